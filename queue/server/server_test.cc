// What clients see: answers, refusals with their exact words, overload.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <set>
#include <thread>

#include "absl/strings/str_cat.h"
#include "queue/server/error_details.pb.h"
#include "queue/server/server_fixture.h"
#include "storage/memory_log.h"

namespace muster::server {
namespace {

using grpc::StatusCode;

v1::ChangeRequest change_of(uint64_t id) {
  v1::ChangeRequest request;
  request.mutable_job()->set_id(id);
  return request;
}

grpc::Status change(ServerFixture& server, const v1::ChangeRequest& request,
                    v1::ChangeReply* reply = nullptr) {
  grpc::ClientContext context;
  v1::ChangeReply ignored;
  return server.stub().Change(&context, request, reply == nullptr ? &ignored : reply);
}

TEST(Server, AnswersASubmissionWithItsIdWhenItIsFolded) {
  ServerFixture server;
  const v1::SubmitResult first = server.submit(command_spec({"/bin/true"}));
  EXPECT_EQ(first.id(), 1u);
  EXPECT_EQ(first.name(), "true");
  EXPECT_FALSE(first.duplicate());
  EXPECT_GT(first.position(), 0);
  const v1::JobView view = server.job(1);
  EXPECT_EQ(view.state().phase(), v1::PENDING);
  EXPECT_EQ(view.state().user(), "anonymous");
  EXPECT_EQ(view.state().queue(), "default");
  EXPECT_GE(view.position(), first.position());
}

TEST(Server, OneKeyTenTimesAtOnceIsOneJob) {
  ServerFixture server;
  std::mutex mutex;
  std::set<uint64_t> ids;
  int originals = 0;
  std::vector<std::thread> clients;
  for (int i = 0; i < 10; ++i) {
    clients.emplace_back([&] {
      v1::SubmitResult result;
      ASSERT_TRUE(server.submit(command_spec({"/bin/true"}), "the-key", &result).ok());
      std::lock_guard lock(mutex);
      ids.insert(result.id());
      originals += result.duplicate() ? 0 : 1;
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(ids, std::set<uint64_t>{1});
  EXPECT_EQ(originals, 1);
}

TEST(Server, AKeyReusedForAnotherSpecIsRefused) {
  ServerFixture server;
  v1::SubmitResult result;
  ASSERT_TRUE(server.submit(command_spec({"/bin/true"}), "k", &result).ok());
  const grpc::Status status = server.submit(command_spec({"/bin/false"}), "k", &result);
  EXPECT_EQ(status.error_code(), StatusCode::ALREADY_EXISTS);
  EXPECT_EQ(status.error_message(),
            "key 'k' was used for job 1 with another spec; use a new key for a new job");
}

TEST(Server, InABatchEachJobHasItsOwnAnswer) {
  ServerFixture server;
  server.submit(command_spec({"/bin/true"}));
  grpc::ClientContext context;
  v1::SubmitRequest request;
  v1::SubmitReply reply;
  for (const char* after : {"true", "nobody"}) {
    v1::SubmitItem& item = *request.add_jobs();
    item.set_key(after);
    *item.mutable_spec() = command_spec({"/bin/true"});
    item.mutable_spec()->mutable_after()->add_ok(after);
  }
  ASSERT_TRUE(server.stub().Submit(&context, request, &reply).ok());
  ASSERT_EQ(reply.results_size(), 2);
  EXPECT_EQ(reply.results(0).code(), 0);
  EXPECT_EQ(reply.results(0).id(), 2u);
  EXPECT_EQ(reply.results(1).code(), StatusCode::NOT_FOUND);
  EXPECT_EQ(reply.results(1).error(), "after.ok: there is no job 'nobody' of user 'anonymous'");
}

TEST(Server, AMalformedFieldRefusesTheWholeBatch) {
  ServerFixture server;
  grpc::ClientContext context;
  v1::SubmitRequest request;
  v1::SubmitReply reply;
  for (int i = 0; i < 2; ++i) {
    request.add_jobs()->set_key(absl::StrCat("k", i));
    *request.mutable_jobs(i)->mutable_spec() = command_spec({"/bin/true"}, i == 0 ? 1 : 9000);
  }
  const grpc::Status status = server.stub().Submit(&context, request, &reply);
  EXPECT_EQ(status.error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(status.error_message(),
            "jobs[1].spec.tasks[0].replicas: 9000 is not allowed; must be 1 to 8192 in all tasks together");
  EXPECT_EQ(server.driver().call([](Turn& turn) { return turn.state().jobs.size(); }), 0u);
}

TEST(Server, ChangesFindTheirJobOrSayWhyNot) {
  ServerFixture server;
  const uint64_t id = server.submit(command_spec({"/bin/true"})).id();
  v1::ChangeRequest request = change_of(id);
  request.set_hold(true);
  ASSERT_TRUE(change(server, request).ok());
  EXPECT_TRUE(server.job(id).state().held());
  EXPECT_EQ(server.job(id).pending_reason(), "held");

  request = change_of(0);
  request.mutable_job()->set_name("true");
  (*request.mutable_update()->mutable_set())["priority"] = "7";
  (*request.mutable_update()->mutable_set())["time_limit"] = "2h";
  v1::ChangeReply reply;
  ASSERT_TRUE(change(server, request, &reply).ok());
  EXPECT_EQ(reply.id(), id);
  EXPECT_EQ(server.job(id).state().priority(), 7);
  EXPECT_EQ(server.job(id).state().time_limit_ms(), 7'200'000);

  request = change_of(id);
  request.set_cancel(true);
  ASSERT_TRUE(change(server, request).ok());
  EXPECT_EQ(server.job(id).state().phase(), v1::CANCELLED);
  EXPECT_EQ(change(server, request).error_message(), "job 1 has ended: CANCELLED");

  request = change_of(12);
  request.set_cancel(true);
  const grpc::Status unknown = change(server, request);
  EXPECT_EQ(unknown.error_code(), StatusCode::NOT_FOUND);
  EXPECT_EQ(unknown.error_message(), "no job 12");
}

TEST(Server, RetryMakesANewJobThatNamesTheOldOne) {
  ServerFixture server;
  const uint64_t id = server.submit(command_spec({"/bin/true"})).id();
  v1::ChangeRequest retry = change_of(id);
  retry.mutable_retry()->set_key("again");
  EXPECT_EQ(change(server, retry).error_message(),
            "job 1 is PENDING; only a job that has ended can be retried");
  v1::ChangeRequest cancel = change_of(id);
  cancel.set_cancel(true);
  ASSERT_TRUE(change(server, cancel).ok());
  v1::ChangeReply reply;
  ASSERT_TRUE(change(server, retry, &reply).ok());
  EXPECT_EQ(reply.id(), 2u);
  EXPECT_EQ(server.job(2).state().retry_of(), 1u);
  ASSERT_TRUE(change(server, retry, &reply).ok());
  EXPECT_EQ(reply.id(), 2u);
  EXPECT_TRUE(reply.duplicate());
}

TEST(Server, ListsNewestFirstAndEndedOnesWhenAsked) {
  ServerFixture server;
  for (int i = 0; i < 5; ++i) server.submit(command_spec({"/bin/true"}));
  v1::ChangeRequest cancel = change_of(3);
  cancel.set_cancel(true);
  ASSERT_TRUE(change(server, cancel).ok());
  const auto ids = [&](bool all, uint32_t limit, uint64_t before, bool* more) {
    grpc::ClientContext context;
    v1::ListJobsRequest request;
    v1::ListJobsReply reply;
    request.set_all(all);
    request.set_limit(limit);
    request.set_before(before);
    EXPECT_TRUE(server.stub().ListJobs(&context, request, &reply).ok());
    std::vector<uint64_t> out;
    for (const v1::JobView& view : reply.jobs()) out.push_back(view.state().id());
    *more = reply.more();
    return out;
  };
  bool more = false;
  EXPECT_EQ(ids(false, 0, 0, &more), (std::vector<uint64_t>{5, 4, 2, 1}));
  EXPECT_FALSE(more);
  EXPECT_EQ(ids(true, 2, 0, &more), (std::vector<uint64_t>{5, 4}));
  EXPECT_TRUE(more);
  EXPECT_EQ(ids(true, 10, 4, &more), (std::vector<uint64_t>{3, 2, 1}));
  EXPECT_FALSE(more);
}

TEST(Server, ExplainsWhatStandsInTheWay) {
  ServerFixture server;
  v1::JobSpec spec = command_spec({"/bin/true"});
  spec.set_hold(true);
  const uint64_t id = server.submit(spec).id();
  grpc::ClientContext context;
  v1::ExplainRequest request;
  v1::ExplainReply reply;
  request.mutable_job()->set_id(id);
  ASSERT_TRUE(server.stub().Explain(&context, request, &reply).ok());
  ASSERT_GE(reply.blockers_size(), 1);
  EXPECT_EQ(reply.blockers(0).code(), "HELD");
  EXPECT_EQ(reply.blockers(0).remedy(), "muster release 1");
}

TEST(Server, OperatesNodesAndQueues) {
  ServerFixture server;
  const auto operate = [&](const v1::OperateRequest& request) {
    grpc::ClientContext context;
    v1::OperateReply reply;
    return server.stub().Operate(&context, request, &reply);
  };
  v1::OperateRequest request;
  request.mutable_queue()->mutable_queue()->set_name("research/vision");
  request.mutable_queue()->mutable_queue()->add_limit()->set_resource("cpus");
  EXPECT_EQ(operate(request).error_message(),
            "queue.limit[0].resource: 'cpus' is not allowed; must be cpu, memory, gpu or gpu.MODEL");
  request.mutable_queue()->mutable_queue()->mutable_limit(0)->set_resource("cpu");
  EXPECT_TRUE(operate(request).ok());
  request.mutable_node()->set_node("n9");
  EXPECT_EQ(operate(request).error_message(),
            "node.action: 0 is not allowed; must be drain, undrain or quarantine");
  grpc::ClientContext context;
  v1::ListQueuesReply queues;
  ASSERT_TRUE(server.stub().ListQueues(&context, {}, &queues).ok());
  ASSERT_EQ(queues.queues_size(), 2);
  EXPECT_EQ(queues.queues(1).spec().name(), "research/vision");
  EXPECT_EQ(queues.queues(1).spec().weight(), 1u);
  EXPECT_TRUE(queues.queues(1).declared());
}

// A log whose appends are answered when the test says so, or fail as it says.
class HeldLog : public storage::Log {
 public:
  void append(std::vector<storage::LogEntry> group, Done done) override {
    std::unique_lock lock(mutex);
    if (!answer.ok()) {
      const absl::Status status = answer;
      lock.unlock();
      done(status);
    } else if (held) {
      waiting.emplace_back(std::move(group), std::move(done));
    } else {
      lock.unlock();
      inner->append(std::move(group), std::move(done));
    }
  }
  absl::Status recover() override {
    std::lock_guard lock(mutex);
    answer = absl::OkStatus();
    ++recovered;
    return absl::OkStatus();
  }
  absl::StatusOr<std::unique_ptr<storage::LogReader>> open_reader(int64_t position) override {
    return inner->open_reader(position);
  }
  absl::StatusOr<int64_t> end() override { return inner->end(); }
  absl::StatusOr<int64_t> first() override { return inner->first(); }
  bool exclusive() const override { return true; }

  void hold() {
    std::lock_guard lock(mutex);
    held = true;
  }
  void release() {
    std::deque<std::pair<std::vector<storage::LogEntry>, Done>> all;
    {
      std::lock_guard lock(mutex);
      held = false;
      all.swap(waiting);
    }
    for (auto& [group, done] : all) inner->append(std::move(group), std::move(done));
  }
  int submissions_held() {
    std::lock_guard lock(mutex);
    int count = 0;
    for (const auto& [group, done] : waiting) {
      for (const storage::LogEntry& entry : group) count += entry.type == "Submitted" ? 1 : 0;
    }
    return count;
  }
  void fail(absl::Status status) {
    std::lock_guard lock(mutex);
    answer = status;
  }

  std::unique_ptr<storage::Log> inner = storage::make_memory_log();
  std::mutex mutex;
  bool held = false;
  int recovered = 0;
  absl::Status answer;
  std::deque<std::pair<std::vector<storage::LogEntry>, Done>> waiting;
};

TEST(Server, OverloadIsRefusedWithADelayAndNothingIsLost) {
  auto log = std::make_unique<HeldLog>();
  HeldLog& held = *log;
  FixtureOptions options;
  options.log = std::move(log);
  options.adjust = [](DriverOptions& driver) { driver.engine.unanswered_max = 5; };
  ServerFixture server(std::move(options));
  server.submit(command_spec({"/bin/true"}));
  held.hold();
  std::vector<std::thread> clients;
  std::atomic<int> taken{0};
  for (int i = 0; i < 5; ++i) {
    clients.emplace_back([&, i] {
      v1::SubmitResult result;
      if (server.submit(command_spec({"/bin/true"}), absl::StrCat("key-", i), &result).ok()) ++taken;
    });
  }
  while (held.submissions_held() < 5) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  v1::SubmitResult result;
  const grpc::Status status = server.submit(command_spec({"/bin/true"}), "late", &result);
  EXPECT_EQ(status.error_code(), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(
      status.error_message(),
      testing::MatchesRegex("5 submissions are unanswered, with [0-9]+ bytes, and this server takes no more "
                            "now; retry after 200 ms"));
  errors::Status details;
  ASSERT_TRUE(details.ParseFromString(status.error_details()));
  EXPECT_EQ(details.details(0).type_url(), "type.googleapis.com/google.rpc.RetryInfo");
  errors::RetryInfo retry;
  ASSERT_TRUE(retry.ParseFromString(details.details(0).value()));
  EXPECT_EQ(retry.retry_delay().nanos(), 200'000'000);
  held.release();
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(taken, 5);
}

TEST(Server, AnAppendThatFailedIsSaidAndTheNextOneIsTaken) {
  auto log = std::make_unique<HeldLog>();
  HeldLog& held = *log;
  FixtureOptions options;
  options.log = std::move(log);
  ServerFixture server(std::move(options));
  server.submit(command_spec({"/bin/true"}));
  held.fail(absl::UnavailableError("no broker"));
  v1::SubmitResult result;
  grpc::Status status = server.submit(command_spec({"/bin/true"}), "k", &result);
  EXPECT_EQ(status.error_code(), StatusCode::UNAVAILABLE);
  EXPECT_EQ(status.error_message(), "the log can't be written: no broker; nothing was taken: ask again");
  EXPECT_FALSE(server.driver().serving());
  held.fail(absl::UnknownError("the broker went away"));
  status = server.submit(command_spec({"/bin/true"}), "k", &result);
  EXPECT_THAT(status.error_message(), testing::StartsWith("the log can't be written: "));
  while (!server.submit(command_spec({"/bin/true"}), "k", &result).ok()) {
  }
  EXPECT_EQ(held.recovered, 1);
  EXPECT_EQ(result.id(), 2u);
}

}  // namespace
}  // namespace muster::server
