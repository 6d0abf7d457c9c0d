// Agents' streams, watches and output: a gang from its submission to its end, as clients see it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "proto/records.h"
#include "queue/server/server_fixture.h"

namespace muster::server {
namespace {

std::vector<v1::Record> watch(ServerFixture& server, const v1::WatchRequest& request,
                              grpc::Status* status = nullptr) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
  auto stream = server.stub().Watch(&context, request);
  std::vector<v1::Record> out;
  v1::Event event;
  int64_t last = -1;
  while (stream->Read(&event)) {
    EXPECT_GT(event.position(), last);
    last = event.position();
    EXPECT_EQ(decode_record(event.value(), "local", &out.emplace_back()), Decoded::kOk);
  }
  const grpc::Status ended = stream->Finish();
  if (status != nullptr) *status = ended;
  return out;
}

std::vector<std::string> types(const std::vector<v1::Record>& records) {
  std::vector<std::string> out;
  for (const v1::Record& record : records) out.push_back(record.type());
  return out;
}

TEST(Nodes, AGangRunsToItsEndAndItsEventsAndOutputCanBeRead) {
  ServerFixture server;
  FakeAgent a(server.nodes(), "a", 4), b(server.nodes(), "b", 4);
  ASSERT_TRUE(a.welcomed());
  ASSERT_TRUE(b.welcomed());
  const uint64_t other = server.submit(command_spec({"/bin/true"})).id();
  const uint64_t id = server.submit(command_spec({"/bin/echo", "hi"}, 8)).id();
  ASSERT_TRUE(server.wait_phase(other, v1::SUCCEEDED));

  // Follows from before its end: the stream ends by itself after the last event.
  v1::WatchRequest request;
  request.mutable_job()->set_id(id);
  request.set_follow(true);
  const std::vector<v1::Record> events = watch(server, request);
  ASSERT_GE(events.size(), 2u + 3 * 8);
  EXPECT_EQ(events.front().type(), "Submitted");
  EXPECT_EQ(events[1].type(), "Placed");
  EXPECT_EQ(events.back().type(), "Exited");
  EXPECT_EQ(server.job(id).state().phase(), v1::SUCCEEDED);
  EXPECT_EQ(server.job(id).state().job_exit(), 0);
  request.set_follow(false);
  EXPECT_EQ(types(watch(server, request)), types(events));

  grpc::ClientContext context;
  v1::LogsRequest logs;
  logs.mutable_job()->set_id(id);
  logs.set_rank(-1);
  auto stream = server.stub().Logs(&context, logs);
  std::map<uint32_t, std::string> output;
  v1::LogChunk chunk;
  while (stream->Read(&chunk)) {
    EXPECT_EQ(chunk.note(), "");
    EXPECT_EQ(chunk.task(), "main");
    output[chunk.rank()] += chunk.data();
  }
  EXPECT_TRUE(stream->Finish().ok());
  ASSERT_EQ(output.size(), 8u);
  for (const auto& [rank, text] : output) EXPECT_EQ(text, "hello\n") << rank;
}

TEST(Nodes, AFailedMemberGivesItsCode) {
  ServerFixture server;
  FakeAgent a(server.nodes(), "a", 4);
  a.exit_code = 3;
  const uint64_t id = server.submit(command_spec({"/bin/false"})).id();
  ASSERT_TRUE(server.wait_phase(id, v1::FAILED));
  EXPECT_EQ(server.job(id).state().job_exit(), 3);
}

TEST(Nodes, WatchingAllFollowsTheLog) {
  ServerFixture server;
  server.submit(command_spec({"/bin/true"}));
  v1::WatchRequest request;
  const std::vector<v1::Record> all = watch(server, request);
  ASSERT_GE(all.size(), 4u);
  EXPECT_THAT(types(all), testing::IsSupersetOf({"LogOpened", "ServerJoined", "TermClaimed", "Submitted"}));
  request.set_follow(true);
  request.set_until(static_cast<int64_t>(all.size()) + 2);
  EXPECT_EQ(watch(server, request).size(), all.size() + 3);  // Ticks come by themselves
}

TEST(Nodes, WhatCannotBeWatchedIsSaid) {
  ServerFixture server;
  grpc::Status status;
  v1::WatchRequest request;
  request.mutable_job()->set_id(9);
  watch(server, request, &status);
  EXPECT_EQ(status.error_code(), grpc::NOT_FOUND);
  EXPECT_EQ(status.error_message(), "no job 9");
  request.set_from(-1);
  watch(server, request, &status);
  EXPECT_EQ(status.error_message(), "from: -1 is not allowed; must be a position, 0 or more");
}

TEST(Nodes, OutputOfAJobWithoutAnAttemptIsRefused) {
  ServerFixture server;
  const uint64_t id = server.submit(command_spec({"/bin/true"})).id();
  grpc::ClientContext context;
  v1::LogsRequest logs;
  logs.mutable_job()->set_id(id);
  auto stream = server.stub().Logs(&context, logs);
  v1::LogChunk chunk;
  EXPECT_FALSE(stream->Read(&chunk));
  EXPECT_EQ(stream->Finish().error_message(), "job 1 has no output: it has not been placed; it is PENDING");
}

TEST(Nodes, OutputOfANodeThatIsAwayHasANote) {
  ServerFixture server;
  uint64_t id = 0;
  {
    FakeAgent a(server.nodes(), "a", 4);
    id = server.submit(command_spec({"/bin/true"})).id();
    ASSERT_TRUE(server.wait_phase(id, v1::SUCCEEDED));
  }
  while (server.driver().call([](Turn& turn) { return turn.engine.stream_of("a"); }) != 0u) {
  }
  grpc::ClientContext context;
  v1::LogsRequest logs;
  logs.mutable_job()->set_id(id);
  auto stream = server.stub().Logs(&context, logs);
  v1::LogChunk chunk;
  ASSERT_TRUE(stream->Read(&chunk));
  EXPECT_EQ(chunk.note(), "node a is not connected to this server");
  EXPECT_TRUE(chunk.end());
  EXPECT_FALSE(stream->Read(&chunk));
}

TEST(Nodes, ANewerSessionOfANodeSupersedes) {
  ServerFixture server;
  FakeAgent first(server.nodes(), "a", 4);
  ASSERT_TRUE(first.welcomed());
  FakeAgent second(server.nodes(), "a", 4);
  ASSERT_TRUE(second.welcomed());
  EXPECT_THAT(first.refused(), testing::StartsWith("superseded"));
}

TEST(Nodes, AMalformedHelloIsRefused) {
  ServerFixture server;
  FakeAgent agent(server.nodes(), "a node", 4);
  EXPECT_EQ(agent.refused(),
            "hello.node: 'a node' is not allowed; must be 1 to 128 letters, digits, '.', '_' or '-'");
}

// A second read of a stream must not begin before the first one's message has been handed on.
TEST(Nodes, ReportsOfAStreamAreAppendedInTheirOrder) {
  constexpr uint64_t kReports = 20'000;
  ServerFixture server;
  grpc::ClientContext context;
  auto stream = server.nodes().Session(&context);
  v1::AgentMessage hello;
  hello.mutable_hello()->set_node("a");
  hello.mutable_hello()->set_incarnation(1);
  ASSERT_TRUE(stream->Write(hello));
  v1::ServerMessage welcome;
  while (stream->Read(&welcome) && !welcome.has_welcome()) {
  }
  std::thread reader([&] {
    for (v1::ServerMessage message; stream->Read(&message) && message.acknowledged() < kReports;) {
    }
    context.TryCancel();
  });
  for (uint64_t sequence = 1; sequence <= kReports; ++sequence) {
    v1::AgentMessage message;
    v1::Exited& exited = *message.mutable_exited();
    exited.mutable_report()->set_incarnation(1);
    exited.mutable_report()->set_sequence(sequence);
    exited.mutable_member()->set_job(1);
    if (!stream->Write(message)) break;
  }
  reader.join();
  uint64_t last = 0;
  for (const v1::Record& record : watch(server, v1::WatchRequest())) {
    if (!record.has_exited()) continue;
    EXPECT_EQ(record.exited().report().sequence(), last + 1);
    last = record.exited().report().sequence();
  }
  EXPECT_EQ(last, kReports);
}

TEST(Nodes, ASilentAgentIsUnreachable) {
  ServerFixture server;
  FakeAgent agent(server.nodes(), "a", 4);  // sends no heartbeats
  ASSERT_TRUE(agent.welcomed());
  const auto unreachable = [&] {
    grpc::ClientContext context;
    v1::ListNodesReply reply;
    return server.stub().ListNodes(&context, {}, &reply).ok() && reply.nodes_size() == 1 &&
           reply.nodes(0).state().unreachable() && !reply.nodes(0).connected();
  };
  for (int i = 0; i < 400 && !unreachable(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_TRUE(unreachable());
}

}  // namespace
}  // namespace muster::server
