// What outlives a server: its jobs, through the log and the store; and what it does when either is not what
// it was.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "proto/records.h"
#include "queue/replay.h"
#include "queue/server/server_fixture.h"
#include "storage/open_log.h"

namespace muster::server {
namespace {

namespace fs = std::filesystem;

class DriverTest : public testing::Test {
 protected:
  DriverTest() {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    root_ = testing::TempDir() + "muster-driver-" + info->name();
    fs::remove_all(root_);
    fs::create_directories(root_);
  }
  ~DriverTest() override { fs::remove_all(root_); }

  FixtureOptions options() const {
    FixtureOptions out;
    out.log_directory = root_ + "/log";
    out.directory = root_ + "/server";
    return out;
  }

  // What `change` does to the log, while no server runs.
  void with_log(const std::function<void(storage::Log&)>& change) {
    auto log = storage::open_log(*storage::parse_log_address("embedded:" + root_ + "/log"),
                                 storage::LogMode::kWrite);
    ASSERT_TRUE(log.ok()) << std::string(log.status().message());
    change(**log);
  }

  static void append(storage::Log& log, std::string value) {
    std::promise<absl::Status> done;
    std::vector<storage::LogEntry> group;
    group.push_back({"cell", "Future", 1, std::move(value)});
    log.append(std::move(group), [&](absl::Status status) { done.set_value(std::move(status)); });
    ASSERT_TRUE(done.get_future().get().ok());
  }

  // Stops the server and compares its last state with a replay of the log.
  void expect_state_is_the_log(ServerFixture& server) {
    int64_t position = -1;
    const std::string digest = server.driver()
                                   .call([&](Turn& turn) {
                                     turn.commit();
                                     position = turn.state().meta.position();
                                     return turn.state().digest().hex();
                                   })
                                   .value();
    server.stop();
    with_log([&](storage::Log& log) {
      queue::Replayer replayer;
      auto reader = *log.open_reader(0);
      int64_t next = 0;
      while (next <= position) {
        const auto records = reader->read(1, 1000);
        ASSERT_TRUE(records.ok() && records->size() == 1);
        const storage::LogRecord& record = records->front();
        ASSERT_TRUE(replayer.add(record.position, record.timestamp_ms, record.key, record.value).ok());
        next = record.position + 1;
      }
      EXPECT_EQ(replayer.digest_hex(), digest);
    });
  }

  std::string root_;
};

TEST_F(DriverTest, ARestartKeepsJobsAndKeys) {
  {
    ServerFixture server(options());
    for (int i = 0; i < 40; ++i) server.submit(command_spec({"/bin/true", absl::StrCat(i)}));
    v1::ChangeRequest request;
    v1::ChangeReply reply;
    request.mutable_job()->set_id(7);
    request.set_cancel(true);
    grpc::ClientContext context;
    ASSERT_TRUE(server.stub().Change(&context, request, &reply).ok());
    expect_state_is_the_log(server);
  }
  ServerFixture server(options());
  for (uint64_t id = 1; id <= 40; ++id)
    EXPECT_EQ(server.job(id).state().phase(), id == 7 ? v1::CANCELLED : v1::PENDING) << id;
  v1::SubmitResult result;
  ASSERT_TRUE(server.submit(command_spec({"/bin/true", "4"}), "fixture-5", &result).ok());
  EXPECT_EQ(result.id(), 5u);
  EXPECT_TRUE(result.duplicate());
}

TEST_F(DriverTest, ALostStoreIsFoldedAnewAndTheStateIsTheLog) {
  {
    ServerFixture server(options());
    for (int i = 0; i < 20; ++i) server.submit(command_spec({"/bin/true"}));
    expect_state_is_the_log(server);
  }
  fs::remove_all(root_ + "/server/state");
  ServerFixture server(options());
  EXPECT_EQ(server.job(20).state().phase(), v1::PENDING);
  expect_state_is_the_log(server);
}

TEST_F(DriverTest, ALogThatEndsBeforeTheStateIsSaidAndFoldedAnew) {
  {
    ServerFixture server(options());
    for (int i = 0; i < 20; ++i) server.submit(command_spec({"/bin/true"}));
  }
  fs::remove_all(root_ + "/log");
  ServerFixture server(options());
  EXPECT_TRUE(server.driver().caught_up());
  EXPECT_TRUE(fs::exists(root_ + "/server/state.damaged-1"));
  EXPECT_EQ(server.submit(command_spec({"/bin/true"})).id(), 1u);
}

TEST_F(DriverTest, WhatCannotBeDecodedIsCountedAndPassedOver) {
  { ServerFixture server(options()); }
  with_log([](storage::Log& log) { append(log, "not a record"); });
  ServerFixture server(options());
  EXPECT_EQ(server.submit(command_spec({"/bin/true"})).id(), 1u);
  EXPECT_EQ(server.driver().call([](Turn& turn) { return turn.state().meta.undecodable(); }), 1u);
}

TEST_F(DriverTest, ARecordOfAFutureFormatStopsTheServerAndNamesIt) {
  { ServerFixture server(options()); }
  with_log([](storage::Log& log) {
    v1::Record record;
    record.set_cell("local");
    record.set_type("Submitted");
    record.set_format(kFormat + 1);
    record.mutable_submitted();
    append(log, record.SerializeAsString());
  });
  std::promise<std::string> fatal;
  FixtureOptions future = options();
  future.adjust = [&](DriverOptions& driver) {
    driver.on_fatal = [&](const std::string& why) { fatal.set_value(why); };
  };
  auto server = Server::start(server_options(std::move(future)), "127.0.0.1:0");
  ASSERT_TRUE(server.ok());
  EXPECT_THAT(
      fatal.get_future().get(),
      testing::MatchesRegex("the record at position [0-9]+ is a Submitted of format 2; this release reads "
                            "formats up to 1: start a release that knows it"));
}

TEST_F(DriverTest, ARecordThatKilledTheFoldTwiceLeavesTheServerReadOnlyBeforeIt) {
  int64_t last = 0;
  {
    ServerFixture server(options());
    for (int i = 0; i < 3; ++i) last = server.submit(command_spec({"/bin/true"})).position();
  }
  // As if two processes had died on the third job's record, before anything was committed.
  fs::remove_all(root_ + "/server/state");
  for (int i = 0; i < 2; ++i) (*FoldMarker::open(root_ + "/server"))->begin(last);
  auto server = Server::start(server_options(options()), "127.0.0.1:0");
  ASSERT_TRUE(server.ok());
  Driver& driver = (*server)->driver();
  while (driver.troubles().text().empty()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_THAT(driver.troubles().text(),
              testing::StartsWith(absl::StrCat("the fold failed twice on the record at position ", last,
                                               "; this server is read-only before it.")));
  EXPECT_EQ(driver.call([](Turn& turn) { return turn.state().jobs.size(); }), 2u);
  std::promise<queue::Outcome> outcome;
  v1::Record body;
  body.mutable_cancel_requested()->set_job(1);
  ASSERT_TRUE(
      driver.change(std::move(body), [&](std::vector<queue::Outcome> all) { outcome.set_value(all[0]); })
          .ok());
  EXPECT_EQ(outcome.get_future().get().code, absl::StatusCode::kUnavailable);
}

TEST_F(DriverTest, AnotherCellsStateIsRefused) {
  { ServerFixture server(options()); }
  FixtureOptions other = options();
  other.log_directory = root_ + "/other-log";
  other.cell = "other";
  const auto server = Server::start(server_options(std::move(other)), "127.0.0.1:0");
  EXPECT_EQ(std::string(server.status().message()),
            "the state is of cell 'local', the log of 'other'; give each cell its own --dir");
}

TEST_F(DriverTest, TwoServersCannotShareAnAddress) {
  ServerFixture server;
  const auto second = Server::start(server_options({}), server.address());
  EXPECT_EQ(std::string(second.status().message()),
            absl::StrCat("--listen ", server.address(),
                         ": the address can't be bound; is another server running there?"));
}

}  // namespace
}  // namespace muster::server
