#include "agent/test_agent.h"

#include <dirent.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "agent/agent.h"
#include "agent/files.h"
#include "agent/processes.h"
#include "agent/task_dir.h"

namespace muster::agent {
namespace {

constexpr int kPatienceTries = 600;  // of 100 ms

}  // namespace

TestAgent::TestAgent(std::vector<std::string> servers, std::vector<std::string> flags)
    : servers_(std::move(servers)), flags_(std::move(flags)), marker_(absl::StrCat("t", random_nonzero())) {
  dir_ = absl::StrCat(std::filesystem::temp_directory_path().string(), "/muster-agent-test-", marker_);
  std::filesystem::create_directories(dir_);
}

TestAgent::~TestAgent() {
  if (pid_ >= 0) stop();
  for (int i = 0; i < 20; ++i) {
    for (const pid_t pid : left_over()) ::kill(pid, SIGKILL);
    if (left_over().empty()) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  std::filesystem::remove_all(dir_);
}

void TestAgent::start() {
  std::vector<std::string> words = {"/proc/self/exe", "--agent", absl::StrJoin(servers_, ","), dir_, marker_};
  words.insert(words.end(), flags_.begin(), flags_.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  if (posix_spawn(&pid_, argv[0], nullptr, nullptr, argv.data(), environ) != 0) abort();
}

void TestAgent::kill() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  wait();
}

int TestAgent::stop() {
  ::kill(pid_, SIGTERM);
  return wait();
}

int TestAgent::wait() {
  int status = 0;
  for (int i = 0; waitpid(pid_, &status, WNOHANG) == 0; ++i) {
    if (i == kPatienceTries * 10) ::kill(pid_, SIGKILL);  // then the code tells
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

v1::PrepareOrder TestAgent::order(uint64_t job, const std::string& text) const {
  v1::PrepareOrder out;
  v1::MemberRef& member = *out.mutable_member();
  member.set_job(job);
  member.set_attempt(1);
  member.mutable_fence()->set_position(static_cast<int64_t>(100 + job));
  member.mutable_fence()->set_nonce(0xabc0 + job);
  out.mutable_task()->set_name("main");
  out.mutable_task()->set_replicas(1);
  for (const char* word : {"/bin/sh", "-c"}) out.mutable_task()->add_command(word);
  out.mutable_task()->add_command(text);
  (*out.mutable_env())["TEST_MARKER"] = marker_;
  out.set_grace_ms(10'000);
  out.set_signal("TERM");
  out.set_world_size(1);
  return out;
}

v1::StartOrder TestAgent::start_order(const v1::MemberRef& member, uint32_t run) {
  v1::StartOrder out;
  *out.mutable_member() = member;
  out.set_run(run);
  out.set_master_addr("127.0.0.1");
  out.set_master_port(20'000);
  out.add_hosts("127.0.0.1:20000");
  out.add_task_names("main");
  out.add_task_replicas(1);
  return out;
}

pid_t TestAgent::spawner() const {
  for (const pid_t child : children_of(pid_)) {
    if (read_file(absl::StrCat("/proc/", child, "/comm")).value_or("") == "muster-spawner\n") return child;
  }
  return -1;
}

std::vector<pid_t> TestAgent::left_over() const {
  std::vector<pid_t> out = processes_with({{"TEST_MARKER", marker_}});
  for (const char* sub : {"/tasks", "/done"}) {
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(dir_ + sub, error)) {
      const TaskDir dir(entry.path());
      const absl::StatusOr<Fd> lock = dir.lock();
      if (!lock.ok() || lock->valid()) continue;
      const absl::StatusOr<TaskRecord> record = dir.read();
      if (record.ok() && record->supervisor) out.push_back(record->supervisor->pid);
    }
  }
  return out;
}

bool TestAgent::wait_nothing_left() const {
  for (int i = 0; i < kPatienceTries; ++i) {
    if (left_over().empty()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  return false;
}

int agent_main_if_asked(int argc, char** argv) {
  if (argc < 5 || strcmp(argv[1], "--agent") != 0) return -1;
  absl::StatusOr<Fd> spawner = fork_spawner();
  if (!spawner.ok()) return 1;
  AgentOptions options;
  options.servers = absl::StrSplit(argv[2], ',');
  options.dir = argv[3];
  options.name = argv[4];
  options.address = "127.0.0.1";
  options.gpus = 0;
  for (int i = 5; i < argc; ++i) {
    const std::vector<std::string> parts = absl::StrSplit(argv[i], '=');
    if (parts[0] == "output_bytes_max") options.output_bytes_max = atoll(parts[1].c_str());
    if (parts[0] == "done_members_max") options.done_members_max = atoll(parts[1].c_str());
    if (parts[0] == "gpus") options.gpus = atoi(parts[1].c_str());
  }
  return run_agent(options, std::move(*spawner));
}

v1::ServerMessage prepare(const v1::PrepareOrder& order) {
  v1::ServerMessage message;
  *message.mutable_prepare() = order;
  return message;
}
v1::ServerMessage start(const v1::StartOrder& order) {
  v1::ServerMessage message;
  *message.mutable_start() = order;
  return message;
}
v1::ServerMessage stop(const v1::MemberRef& member, int64_t grace_ms, const std::string& signal) {
  v1::ServerMessage message;
  *message.mutable_stop()->mutable_member() = member;
  message.mutable_stop()->set_grace_ms(grace_ms);
  message.mutable_stop()->set_signal(signal);
  return message;
}
v1::ServerMessage forget(const v1::MemberRef& member) {
  v1::ServerMessage message;
  *message.mutable_forget()->mutable_member() = member;
  return message;
}

namespace {
bool same(const v1::MemberRef& a, const v1::MemberRef& b) {
  return a.SerializeAsString() == b.SerializeAsString();
}
}  // namespace

const v1::Exited* exited_of(const std::vector<v1::AgentMessage>& reports, const v1::MemberRef& member,
                            uint32_t run) {
  for (const v1::AgentMessage& report : reports) {
    if (report.has_exited() && same(report.exited().member(), member) &&
        (run == 0 || report.exited().run() == run))
      return &report.exited();
  }
  return nullptr;
}

int count_of(const std::vector<v1::AgentMessage>& reports, v1::AgentMessage::WhatCase kind,
             const v1::MemberRef& member) {
  int count = 0;
  for (const v1::AgentMessage& report : reports) {
    if (report.what_case() != kind) continue;
    switch (kind) {
      case v1::AgentMessage::kPrepared:
        count += same(report.prepared().member(), member);
        break;
      case v1::AgentMessage::kPrepareFailed:
        count += same(report.prepare_failed().member(), member);
        break;
      case v1::AgentMessage::kStarted:
        count += same(report.started().member(), member);
        break;
      default:
        count += same(report.exited().member(), member);
        break;
    }
  }
  return count;
}

}  // namespace muster::agent
