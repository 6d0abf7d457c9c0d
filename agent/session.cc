#include "agent/session.h"

#include <grpcpp/grpcpp.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "absl/strings/str_cat.h"
#include "agent/fd.h"
#include "agent/files.h"
#include "muster/v1/service.grpc.pb.h"

namespace muster::agent {
namespace {

using std::chrono::milliseconds;
using Stream = grpc::ClientReaderWriter<v1::AgentMessage, v1::ServerMessage>;

constexpr size_t kInboxMax = 4096;
constexpr int kOutputChunksMax = 8;
constexpr int64_t kBackOffMinMs = 50;
constexpr int64_t kBackOffMaxMs = 1000;
constexpr int64_t kSupersededBackOffMs = 5000;
constexpr int64_t kDialMs = 3000;
constexpr int64_t kWelcomeMs = 20'000;
constexpr int kMessageBytesMax = 16 << 20;

std::shared_ptr<grpc::Channel> dial(const std::string& server) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 10'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 5'000);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // no other dial's back-off
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetMaxReceiveMessageSize(kMessageBytesMax);
  auto channel = grpc::CreateCustomChannel(server, grpc::InsecureChannelCredentials(), arguments);
  const auto deadline = std::chrono::system_clock::now() + milliseconds(kDialMs);
  // A refused connection is known at once; the next server is not kept waiting for this one.
  for (grpc_connectivity_state state = channel->GetState(true); state != GRPC_CHANNEL_READY;
       state = channel->GetState(true)) {
    if (state == GRPC_CHANNEL_TRANSIENT_FAILURE || !channel->WaitForStateChange(state, deadline))
      return nullptr;
  }
  return channel;
}

}  // namespace

class Session::Impl {
 public:
  explicit Impl(std::vector<std::string> servers)
      : servers_(std::move(servers)), wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    reader_ = std::thread([this] { read_loop(); });
    writer_ = std::thread([this] { write_loop(); });
  }

  ~Impl() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
      if (context_ != nullptr) context_->TryCancel();
    }
    changed_.notify_all();
    reader_.join();
    writer_.join();
  }

  int fd() const { return wake_.get(); }

  std::vector<Event> take() {
    uint64_t ignored = 0;
    (void)!read(wake_.get(), &ignored, sizeof ignored);
    const std::lock_guard lock(mutex_);
    std::vector<Event> out(std::make_move_iterator(inbox_.begin()), std::make_move_iterator(inbox_.end()));
    inbox_.clear();
    changed_.notify_all();
    return out;
  }

  void hello(uint64_t number, v1::Hello hello) {
    const std::lock_guard lock(mutex_);
    if (number != number_) return;
    hello_ = std::make_unique<v1::Hello>(std::move(hello));
    changed_.notify_all();
  }

  void send(uint64_t number, v1::AgentMessage message) {
    const std::lock_guard lock(mutex_);
    if (number != number_ || !open_) return;
    if (message.has_output()) ++outputs_;
    outbox_.push_back(std::move(message));
    changed_.notify_all();
  }

  int output_room() const {
    const std::lock_guard lock(mutex_);
    return open_ ? kOutputChunksMax - outputs_ : 0;
  }

  int64_t heard_ms() const { return open_ ? heard_ms_.load() : 0; }

  void check_silence() {
    const std::lock_guard lock(mutex_);
    if (context_ == nullptr) return;
    const int64_t allowed_ms = open_ ? 5 * heartbeat_ms_ : kWelcomeMs;
    if (boottime_ms() - heard_ms_ <= allowed_ms) return;
    why_ = absl::StrCat("silent for ", allowed_ms, " ms");
    context_->TryCancel();
  }

 private:
  void read_loop();
  void write_loop();
  void converse(const std::string& server, const std::shared_ptr<grpc::Channel>& channel);
  bool say_hello(Stream* stream);
  void listen(Stream* stream);
  void pause();
  void post(Event event);
  void log_unreachable(const std::string& server);
  void signal() const {
    const uint64_t one = 1;
    (void)!write(wake_.get(), &one, sizeof one);
  }

  const std::vector<std::string> servers_;
  const Fd wake_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // Below: under the mutex, unless atomic.
  bool stop_ = false;
  std::deque<Event> inbox_;
  std::deque<v1::AgentMessage> outbox_;
  std::unique_ptr<v1::Hello> hello_;
  grpc::ClientContext* context_ = nullptr;  // of the present stream
  Stream* stream_ = nullptr;                // the same, once the writer may use it
  bool writing_ = false;                    // the writer is inside Write
  uint64_t number_ = 0;
  int outputs_ = 0;
  std::string why_;
  std::atomic<bool> open_ = false;
  std::atomic<int64_t> heard_ms_ = 0;
  std::atomic<int64_t> heartbeat_ms_ = 1000;
  // The reader's own.
  int64_t back_off_ms_ = kBackOffMinMs;
  int64_t said_unreachable_ms_ = 0;
  std::thread reader_;
  std::thread writer_;
};

void Session::Impl::post(Event event) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return stop_ || inbox_.size() < kInboxMax; });
  event.number = number_;
  inbox_.push_back(std::move(event));
  signal();
}

void Session::Impl::pause() {
  const int64_t jittered_ms =
      back_off_ms_ * 3 / 4 + static_cast<int64_t>(random_nonzero() % (back_off_ms_ / 2 + 1));
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, milliseconds(jittered_ms), [this] { return stop_; });
}

void Session::Impl::log_unreachable(const std::string& server) {
  const int64_t now_ms = boottime_ms();
  if (said_unreachable_ms_ != 0 && now_ms - said_unreachable_ms_ < 60'000) return;
  said_unreachable_ms_ = now_ms;
  spdlog::warn("no server at {}; trying on ({} known)", server, servers_.size());
}

void Session::Impl::read_loop() {
  for (size_t next = 0;; ++next) {
    {
      const std::lock_guard lock(mutex_);
      if (stop_) return;
    }
    const std::string& server = servers_[next % servers_.size()];
    if (const auto channel = dial(server)) {
      said_unreachable_ms_ = 0;
      converse(server, channel);
    } else {
      log_unreachable(server);
    }
    pause();
    back_off_ms_ = std::clamp(back_off_ms_ * 2, kBackOffMinMs, kBackOffMaxMs);
  }
}

// One stream, from its beginning to its end.
void Session::Impl::converse(const std::string& server, const std::shared_ptr<grpc::Channel>& channel) {
  const auto stub = v1::Nodes::NewStub(channel);
  grpc::ClientContext context;
  const auto stream = stub->Session(&context);
  {
    const std::lock_guard lock(mutex_);
    if (stop_) {
      context.TryCancel();
    }
    context_ = &context;
    ++number_;
    hello_.reset();
    why_.clear();
    heard_ms_ = boottime_ms();
  }
  if (say_hello(stream.get())) listen(stream.get());
  {
    std::unique_lock lock(mutex_);
    open_ = false;
    stream_ = nullptr;
    context.TryCancel();  // ends a Write that is under way
    changed_.wait(lock, [this] { return !writing_; });
    context_ = nullptr;
    outbox_.clear();
    outputs_ = 0;
  }
  const grpc::Status status = stream->Finish();
  Event event;
  event.kind = Event::kClosed;
  const std::lock_guard lock(mutex_);
  event.text = absl::StrCat(server, ": ", why_.empty() ? status.error_message() : why_);
  event.number = number_;
  inbox_.push_back(std::move(event));
  signal();
}

bool Session::Impl::say_hello(Stream* stream) {
  Event dialled;
  dialled.kind = Event::kDialled;
  post(std::move(dialled));
  v1::AgentMessage message;
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return stop_ || hello_ != nullptr; });
    if (stop_) return false;
    *message.mutable_hello() = std::move(*hello_);
  }
  return stream->Write(message);
}

void Session::Impl::listen(Stream* stream) {
  v1::ServerMessage message;
  while (stream->Read(&message)) {
    heard_ms_ = boottime_ms();
    Event event;
    event.kind = Event::kMessage;
    if (message.has_heartbeat()) continue;
    if (message.has_refused()) {
      const std::lock_guard lock(mutex_);
      why_ = message.refused();
      // Two agents under one name would take the node from each other without end.
      if (why_.rfind("superseded", 0) == 0) back_off_ms_ = kSupersededBackOffMs;
    }
    if (message.has_welcome()) {
      const std::lock_guard lock(mutex_);
      heartbeat_ms_ = std::max<int64_t>(50, message.welcome().heartbeat_ms());
      back_off_ms_ = kBackOffMinMs;
      stream_ = stream;
      open_ = true;
      event.kind = Event::kOpened;
      changed_.notify_all();
    }
    const bool refused = message.has_refused();
    event.message = std::move(message);
    post(std::move(event));
    if (refused) return;
  }
}

void Session::Impl::write_loop() {
  auto last_write = std::chrono::steady_clock::now();
  std::unique_lock lock(mutex_);
  while (!stop_) {
    const auto due = last_write + milliseconds(heartbeat_ms_ / 2);
    changed_.wait_until(lock, due, [this] { return stop_ || (stream_ != nullptr && !outbox_.empty()); });
    if (stop_) return;
    if (stream_ == nullptr) {
      last_write = std::chrono::steady_clock::now();
      continue;
    }
    v1::AgentMessage message;
    grpc::WriteOptions options;
    if (outbox_.empty()) {
      message.set_heartbeat(true);
    } else {
      message = std::move(outbox_.front());
      outbox_.pop_front();
      if (!outbox_.empty()) options.set_buffer_hint();  // more follows at once
    }
    Stream* stream = stream_;
    writing_ = true;
    lock.unlock();
    const bool written = stream->Write(message, options);
    last_write = std::chrono::steady_clock::now();
    lock.lock();
    writing_ = false;
    if (message.has_output() && outputs_ > 0) {
      --outputs_;
      signal();
    }
    if (!written && context_ != nullptr) context_->TryCancel();
    changed_.notify_all();
  }
}

Session::Session(std::vector<std::string> servers) : impl_(std::make_unique<Impl>(std::move(servers))) {}
Session::~Session() = default;
int Session::fd() const {
  return impl_->fd();
}
std::vector<Session::Event> Session::take() {
  return impl_->take();
}
void Session::hello(uint64_t number, v1::Hello hello) {
  impl_->hello(number, std::move(hello));
}
void Session::send(uint64_t number, v1::AgentMessage message) {
  impl_->send(number, std::move(message));
}
int Session::output_room() const {
  return impl_->output_room();
}
int64_t Session::heard_ms() const {
  return impl_->heard_ms();
}
void Session::check_silence() {
  impl_->check_silence();
}

}  // namespace muster::agent
