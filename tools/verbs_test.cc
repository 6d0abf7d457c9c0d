// The verbs against a server that answers what each test wants: exit codes, messages, retries.
#include "tools/verbs.h"

#include <gmock/gmock.h>
#include <google/protobuf/any.pb.h>
#include <google/protobuf/text_format.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <deque>
#include <fstream>
#include <mutex>

#include "muster/v1/service.grpc.pb.h"
#include "queue/server/error_details.pb.h"

namespace muster::tools {
namespace {

using google::protobuf::TextFormat;
using testing::HasSubstr;

// Gives its answers in their order, the last one again and again; keeps what it was asked.
class FakeServer : public v1::Muster::Service {
 public:
  template <typename Reply>
  struct Answer {
    grpc::Status status;
    Reply reply;
  };

  grpc::Status Submit(grpc::ServerContext*, const v1::SubmitRequest* request,
                      v1::SubmitReply* reply) override {
    submitted.push_back(*request);
    return next(&submits, reply);
  }
  grpc::Status GetJob(grpc::ServerContext*, const v1::GetJobRequest*, v1::JobView* reply) override {
    return next(&jobs, reply);
  }
  grpc::Status Explain(grpc::ServerContext*, const v1::ExplainRequest*, v1::ExplainReply* reply) override {
    reply->set_never(true);
    reply->set_summary("can never run: wants 9 GPUs on one node, and the largest has 8");
    return grpc::Status::OK;
  }
  grpc::Status Change(grpc::ServerContext*, const v1::ChangeRequest* request,
                      v1::ChangeReply* reply) override {
    changed.push_back(*request);
    return next(&changes, reply);
  }

  std::deque<Answer<v1::SubmitReply>> submits;
  std::deque<Answer<v1::JobView>> jobs;
  std::deque<Answer<v1::ChangeReply>> changes;
  std::vector<v1::SubmitRequest> submitted;
  std::vector<v1::ChangeRequest> changed;

 private:
  template <typename Reply>
  grpc::Status next(std::deque<Answer<Reply>>* answers, Reply* reply) {
    const std::lock_guard lock(mutex_);
    if (answers->empty()) return {grpc::StatusCode::UNIMPLEMENTED, "no answer"};
    const Answer<Reply> answer = answers->front();
    if (answers->size() > 1) answers->pop_front();
    *reply = answer.reply;
    return answer.status;
  }
  std::mutex mutex_;
};

struct Ran {
  int code = 0;
  std::string out, err;
};

class Verbs : public testing::Test {
 protected:
  Verbs() {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&fake_);
    server_ = builder.BuildAndStart();
    setenv("MUSTER_SERVER", ("127.0.0.1:" + std::to_string(port)).c_str(), 1);
    setenv("USER", "ana", 1);
  }
  ~Verbs() override { server_->Shutdown(); }

  Ran run(std::vector<std::string> words) {
    words.insert(words.begin(), "muster");
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    Ran out;
    out.code = verb_main(static_cast<int>(words.size()), argv.data());
    out.out = testing::internal::GetCapturedStdout();
    out.err = testing::internal::GetCapturedStderr();
    return out;
  }

  void answer_submit(const std::string& reply, grpc::Status status = {}) {
    fake_.submits.push_back({std::move(status), parsed<v1::SubmitReply>(reply)});
  }
  void answer_job(const std::string& view, grpc::Status status = {}) {
    fake_.jobs.push_back({std::move(status), parsed<v1::JobView>(view)});
  }

  template <typename Message>
  static Message parsed(const std::string& text) {
    Message message;
    EXPECT_TRUE(TextFormat::ParseFromString(text, &message)) << text;
    return message;
  }

  FakeServer fake_;
  std::unique_ptr<grpc::Server> server_;
};

TEST_F(Verbs, SubmitPrintsTheId) {
  answer_submit("results { id: 12 name: 'true' }");
  const Ran ran = run({"submit", "--replicas", "2", "--", "true", "--replicas"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out, "12\n");
  ASSERT_EQ(fake_.submitted.size(), 1U);
  const v1::SubmitItem& item = fake_.submitted[0].jobs(0);
  EXPECT_EQ(item.key().size(), 32U);
  EXPECT_EQ(item.spec().user(), "ana");
  EXPECT_EQ(item.spec().tasks(0).replicas(), 2U);
  EXPECT_EQ(item.spec().tasks(0).command(1), "--replicas");
}

TEST_F(Verbs, SubmitAsJson) {
  answer_submit("results { id: 12 name: 'true' duplicate: true }");
  EXPECT_EQ(run({"submit", "-o", "json", "--key", "k1", "--", "true"}).out,
            "{\"schema\":1,\"id\":12,\"name\":\"true\",\"duplicate\":true}\n");
  EXPECT_EQ(fake_.submitted[0].jobs(0).key(), "k1");
}

TEST_F(Verbs, SubmitSendsTheSameKeyAgain) {
  google::protobuf::Any any;
  errors::RetryInfo info;
  info.mutable_retry_delay()->set_nanos(5'000'000);
  any.set_type_url("type.googleapis.com/google.rpc.RetryInfo");
  any.set_value(info.SerializeAsString());
  errors::Status details;
  *details.add_details() = any;
  answer_submit("", {grpc::StatusCode::UNAVAILABLE, "not caught up"});
  answer_submit("", {grpc::StatusCode::RESOURCE_EXHAUSTED, "too many", details.SerializeAsString()});
  answer_submit("results { code: 14 error: 'the log is away' }");
  answer_submit("results { id: 7 }");
  const Ran ran = run({"submit", "--", "true"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out, "7\n");
  ASSERT_EQ(fake_.submitted.size(), 4U);
  for (const v1::SubmitRequest& request : fake_.submitted) {
    EXPECT_EQ(request.jobs(0).key(), fake_.submitted[0].jobs(0).key());
    EXPECT_EQ(request.jobs(0).spec().tasks(0).command(0), "true");
  }
}

TEST_F(Verbs, SubmitGivesUpWithoutAServer) {
  server_->Shutdown();
  const Ran ran = run({"submit", "--patience", "200ms", "--", "true"});
  EXPECT_EQ(ran.code, kNoServer);
  EXPECT_EQ(ran.err, std::string("muster: no server answers at ") + getenv("MUSTER_SERVER") +
                         "; start one with `muster local --dir DIR`, or set MUSTER_SERVER\n");
}

TEST_F(Verbs, SubmitOfAFileIsInBatches) {
  const std::string path = testing::TempDir() + "/many.yaml";
  std::ofstream file(path);
  for (int i = 0; i < 1001; ++i) file << "command: [a]\n---\n";
  file.close();
  std::string all;
  for (int i = 0; i < 1000; ++i) all += "results { id: 1 } ";
  answer_submit(all);
  answer_submit("results { code: 6 error: 'the key is another job\\'s' }");
  const Ran ran = run({"submit", path});
  EXPECT_EQ(ran.code, kFailed);
  EXPECT_EQ(ran.err, "muster: job 1001 of these: the key is another job's\n");
  ASSERT_EQ(fake_.submitted.size(), 2U);
  EXPECT_EQ(fake_.submitted[0].jobs_size(), 1000);
  EXPECT_EQ(fake_.submitted[1].jobs_size(), 1);
}

TEST_F(Verbs, UsageErrorsSayWhatWasMeant) {
  const std::pair<std::vector<std::string>, std::string> cases[] = {
      {{"submti"}, "muster: there is no verb 'submti'; did you mean 'submit'? `muster help` lists them\n"},
      {{"plan", "x"}, "muster: 'plan' is planned and not served yet by this release\n"},
      {{"submit"}, "muster: nothing to submit: give a job file, or `-- command`\n"},
      {{"submit", "--replcias", "2", "--", "true"},
       "muster submit: unknown option '--replcias'; did you mean '--replicas'? (`muster submit --help` says "
       "more)\n"},
      {{"submit", "/nowhere/job.yaml"}, "muster: /nowhere/job.yaml: No such file or directory\n"},
      {{"ls", "-o", "xml"}, "muster ls: -o xml: must be text or json (`muster ls --help` says more)\n"},
      {{"ls", "--state", "RUNING"},
       "muster: --state RUNING: there is no such state; did you mean 'RUNNING'?\n"},
      {{"wait"}, "muster wait: ID is required (`muster wait --help` says more)\n"},
      {{"show", "12@"},
       "muster: '12@' names no job; write 12, 12[3] (an element), 12.actor.0 (a member), 12@2 (an attempt) "
       "or the "
       "job's name\n"},
      {{"node", "drian", "a1"},
       "muster node: unexpected argument 'drian'; did you mean 'drain'? (`muster node --help` says more)\n"},
      {{"update", "12", "time_limit=soon"},
       "muster: time_limit: 'soon' is not a time; write 250ms, 30s, 10m, 1h30m, 7d or a number of seconds\n"},
      {{"local", "--dir", "x", "--autoscale"},
       "muster: '--autoscale' is planned and not served yet by this release\n"},
      {{"run", "--array", "3", "--", "true"},
       "muster run: runs no array; `muster submit` it, then `muster wait` (`muster run --help` says more)\n"},
  };
  for (const auto& [words, message] : cases) {
    const Ran ran = run(words);
    EXPECT_EQ(ran.code, kUsage) << words[0];
    EXPECT_EQ(ran.err, message);
    EXPECT_EQ(ran.out, "");
  }
}

TEST_F(Verbs, WaitPassesTheJobsExitCodeOn) {
  answer_job("state { id: 12 phase: RUNNING }");
  answer_job("", {grpc::StatusCode::UNAVAILABLE, "the server is starting"});
  answer_job("state { id: 12 phase: FAILED reason: EXIT job_exit: 3 message: 'rank 1 exited 3' }");
  Ran ran = run({"wait", "12"});
  EXPECT_EQ(ran.code, 3);
  EXPECT_EQ(ran.err, "muster: job 12 FAILED: EXIT 3: rank 1 exited 3\n");
  fake_.jobs.clear();
  answer_job("state { id: 12 phase: SUCCEEDED }");
  EXPECT_EQ(run({"wait", "12"}).code, kDone);
  fake_.jobs.clear();
  answer_job("state { id: 12 phase: CANCELLED reason: BY_USER }");
  EXPECT_EQ(run({"wait", "12"}).code, kCancelled);
}

TEST_F(Verbs, WaitEndsWithoutTheJob) {
  answer_job("state { id: 12 phase: RUNNING }");
  Ran ran = run({"wait", "12", "--timeout", "50ms"});
  EXPECT_EQ(ran.code, kNotFinished);
  EXPECT_EQ(ran.err, "muster: job 12 has not ended: RUNNING\n");
  fake_.jobs.clear();
  answer_job("", {grpc::StatusCode::NOT_FOUND, "no job 12"});
  ran = run({"wait", "12"});
  EXPECT_EQ(ran.code, kNotFound);
  EXPECT_EQ(ran.err, "muster: no job 12\n");
  fake_.jobs.clear();
  answer_job("state { id: 12 phase: PENDING } never: true");
  ran = run({"wait", "12"});
  EXPECT_EQ(ran.code, kNever);
  EXPECT_EQ(
      ran.err,
      "muster: job 12: can never run: wants 9 GPUs on one node, and the largest has 8; `muster why 12` says "
      "more\n");
}

TEST_F(Verbs, ServersRefusalsAreExitCodes) {
  const std::pair<grpc::StatusCode, int> cases[] = {
      {grpc::StatusCode::INVALID_ARGUMENT, kUsage},   {grpc::StatusCode::NOT_FOUND, kNotFound},
      {grpc::StatusCode::PERMISSION_DENIED, kDenied}, {grpc::StatusCode::FAILED_PRECONDITION, kFailed},
      {grpc::StatusCode::ALREADY_EXISTS, kFailed},    {grpc::StatusCode::UNAVAILABLE, kNoServer},
  };
  for (const auto& [status, code] : cases) {
    fake_.changes = {{grpc::Status(status, "said so"), v1::ChangeReply()}};
    const Ran ran = run({"cancel", "12"});
    EXPECT_EQ(ran.code, code);
    EXPECT_EQ(ran.err, "muster: said so\n");
  }
}

TEST_F(Verbs, UpdateSendsTimesInMilliseconds) {
  fake_.changes = {{grpc::Status::OK, v1::ChangeReply()}};
  EXPECT_EQ(run({"update", "12", "time_limit=1h30m", "priority=5"}).code, 0);
  const auto& set = fake_.changed[0].update().set();
  EXPECT_EQ(set.at("time_limit"), "5400000ms");
  EXPECT_EQ(set.at("priority"), "5");
}

TEST_F(Verbs, ShowAsText) {
  answer_job(
      R"(state { id: 12 name: "x" user: "ana" queue: "default" phase: PENDING } pending_reason: "wants 8 GPUs"
                spec { tasks { name: "main" replicas: 2 resources { cpu_milli: 500 } command: "./x" } })");
  const Ran ran = run({"show", "12"});
  EXPECT_EQ(ran.out,
            "job 12  x\n"
            "  state       PENDING: wants 8 GPUs\n"
            "  queue       default, user ana, priority 0\n"
            "  submitted   -\n"
            "  task        main × 2: cpu 500m; ./x\n");
}

TEST_F(Verbs, HelpNamesEveryVerb) {
  const Ran ran = run({"help"});
  EXPECT_EQ(ran.code, 0);
  for (const char* verb : {"local",  "server", "agent", "submit", "run",  "ls",      "show",    "why",
                           "logs",   "events", "wait",  "cancel", "hold", "release", "requeue", "retry",
                           "update", "node",   "queue", "policy", "log",  "status",  "version"}) {
    EXPECT_THAT(ran.out, HasSubstr(std::string("\n  ") + verb + " "));
    EXPECT_THAT(run({verb, "--help"}).out, HasSubstr(std::string("Usage: muster ") + verb)) << verb;
  }
}

}  // namespace
}  // namespace muster::tools
