#include "tools/bench/load.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/proto_utils.h>

#include <condition_variable>
#include <mutex>
#include <unordered_set>

#include "absl/strings/str_cat.h"
#include "tools/bench/measure.h"

namespace muster::bench {
namespace {

constexpr const char* kSubmit = "/muster.v1.Muster/Submit";

// The calls of one send(): each answer starts the next call.
class Sender {
 public:
  Sender(grpc::GenericStub& stub, const std::vector<grpc::ByteBuffer>& requests)
      : stub_(stub), requests_(requests), replies_(requests.size()), contexts_(requests.size()) {}

  absl::Status run(int in_flight) {
    for (int i = 0; i < in_flight; ++i) start_next();
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return running_ == 0 && (next_ == requests_.size() || !failure_.ok()); });
    return failure_;
  }
  const std::vector<grpc::ByteBuffer>& replies() const { return replies_; }

 private:
  void start_next() {
    size_t mine;
    {
      std::lock_guard lock(mutex_);
      if (next_ == requests_.size() || !failure_.ok()) return;
      mine = next_++;
      ++running_;
    }
    contexts_[mine] = std::make_unique<grpc::ClientContext>();
    stub_.UnaryCall(contexts_[mine].get(), kSubmit, {}, &requests_[mine], &replies_[mine],
                    [this, mine](const grpc::Status& status) { answered(mine, status); });
  }

  void answered(size_t mine, const grpc::Status& status) {
    if (status.ok()) start_next();
    std::lock_guard lock(mutex_);
    if (!status.ok() && failure_.ok())
      failure_ = absl::InternalError(absl::StrCat("request ", mine, " was not answered: gRPC code ",
                                                  status.error_code(), ", ", status.error_message()));
    --running_;
    changed_.notify_all();
  }

  grpc::GenericStub& stub_;
  const std::vector<grpc::ByteBuffer>& requests_;
  std::vector<grpc::ByteBuffer> replies_;
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts_;
  std::mutex mutex_;
  std::condition_variable changed_;
  size_t next_ = 0;
  int running_ = 0;
  absl::Status failure_;
};

grpc::ByteBuffer serialised(const v1::SubmitRequest& request) {
  grpc::Slice slice(request.SerializeAsString());
  return grpc::ByteBuffer(&slice, 1);
}

}  // namespace

v1::SubmitItem training_job(uint64_t number) {
  v1::SubmitItem item;
  item.set_key(absl::StrCat("bench-", absl::Hex(number * 0x9e3779b97f4a7c15, absl::kZeroPad16)));
  v1::JobSpec& spec = *item.mutable_spec();
  spec.set_name(absl::StrCat("resnet50-sweep-", number));
  spec.set_queue("research/vision");
  spec.set_user("ana");
  spec.set_time_limit_ms(4 * 3600 * 1000);
  v1::Task& task = *spec.add_tasks();
  task.set_name("main");
  task.set_replicas(1);
  task.mutable_resources()->set_cpu_milli(1000);
  task.mutable_resources()->set_memory_bytes(int64_t{1} << 20);
  for (const char* word : {"python3", "-m", "vision.train", "--model=resnet50", "--data=/data/imagenet",
                           "--batch-size=256", "--epochs=90"})
    task.add_command(word);
  task.add_command(absl::StrCat("--seed=", number));
  (*task.mutable_env())["NCCL_DEBUG"] = "WARN";
  (*task.mutable_env())["OMP_NUM_THREADS"] = "4";
  (*spec.mutable_labels())["project"] = "imagenet-baseline";
  return item;
}

v1::SubmitItem trivial_job(uint64_t number) {
  v1::SubmitItem item;
  item.set_key(absl::StrCat("true-", number));
  v1::JobSpec& spec = *item.mutable_spec();
  spec.set_user("ana");
  v1::Task& task = *spec.add_tasks();
  task.set_name("main");
  task.set_replicas(1);
  task.mutable_resources()->set_cpu_milli(1000);
  task.add_command("/bin/true");
  return item;
}

Load::Load(Make make, uint64_t first, uint64_t count, uint64_t batch) : jobs_(count) {
  v1::SubmitRequest request;
  for (uint64_t number = first; number < first + count; ++number) {
    *request.add_jobs() = make(number);
    if (static_cast<uint64_t>(request.jobs_size()) < batch && number + 1 < first + count) continue;
    requests_.push_back(serialised(request));
    request.Clear();
  }
}

absl::StatusOr<double> Load::send(const std::string& server, int in_flight) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  auto channel = grpc::CreateCustomChannel(server, grpc::InsecureChannelCredentials(), arguments);
  if (!channel->WaitForConnected(std::chrono::system_clock::now() + std::chrono::seconds(10)))
    return absl::UnavailableError(absl::StrCat("no server answers at ", server));
  grpc::GenericStub stub(channel);
  Sender sender(stub, requests_);
  const StopWatch watch;
  const absl::Status sent = sender.run(in_flight);
  const double seconds = watch.seconds();
  if (!sent.ok()) return sent;
  if (absl::Status bad = check(sender.replies()); !bad.ok()) return bad;
  return seconds;
}

absl::Status Load::check(const std::vector<grpc::ByteBuffer>& replies) const {
  std::unordered_set<uint64_t> ids;
  for (grpc::ByteBuffer buffer : replies) {
    v1::SubmitReply reply;
    if (!grpc::SerializationTraits<v1::SubmitReply>::Deserialize(&buffer, &reply).ok())
      return absl::InternalError("a reply could not be read");
    for (const v1::SubmitResult& result : reply.results()) {
      if (result.code() != 0 || result.duplicate())
        return absl::InternalError(absl::StrCat("a job was refused: ", result.error()));
      ids.insert(result.id());
    }
  }
  if (ids.size() == jobs_ && !ids.contains(0)) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(jobs_, " jobs were submitted, and ", ids.size(), " ids given"));
}

}  // namespace muster::bench
