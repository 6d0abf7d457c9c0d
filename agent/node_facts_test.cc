// The agent's small pure parts: environment, models of GPUs, limits, ports, tasks' files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "agent/cgroup.h"
#include "agent/files.h"
#include "agent/inventory.h"
#include "agent/member_env.h"
#include "agent/node_identity.h"
#include "agent/nvml.h"
#include "agent/ports.h"
#include "agent/processes.h"
#include "agent/task_dir.h"

namespace muster::agent {
namespace {

class Scratch : public ::testing::Test {
 protected:
  Scratch()
      : dir_(absl::StrCat(std::filesystem::temp_directory_path().string(), "/muster-facts-",
                          random_nonzero())) {
    std::filesystem::create_directories(dir_);
  }
  ~Scratch() override { std::filesystem::remove_all(dir_); }
  void put(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(dir_ + path).parent_path());
    ASSERT_TRUE(write_atomic(dir_ + path, text).ok());
  }
  std::string get(const std::string& path) { return read_file(dir_ + path).value_or("(absent)"); }

  const std::string dir_;
};

v1::PrepareOrder actor_order() {
  v1::PrepareOrder order;
  order.mutable_member()->set_job(12);
  order.mutable_member()->set_element(4);
  order.mutable_member()->set_attempt(2);
  order.mutable_member()->set_rank(2);
  order.mutable_member()->mutable_fence()->set_position(77);
  order.mutable_member()->mutable_fence()->set_nonce(0xbeef);
  order.mutable_task()->set_name("actor");
  order.set_task_index(1);
  order.add_devices(3);
  order.add_devices(5);
  (*order.mutable_env())["LR"] = "0.1";
  (*order.mutable_env())["RANK"] = "99";
  order.set_world_size(3);
  return order;
}

v1::StartOrder actor_start() {
  v1::StartOrder start;
  start.set_master_addr("10.0.0.1");
  start.set_master_port(20'001);
  for (const char* host : {"10.0.0.1:20001", "10.0.0.2:20002", "10.0.0.3:20003"}) start.add_hosts(host);
  start.set_end_wall_ms(1'700'000'123'456);
  start.add_task_names("learner");
  start.add_task_names("actor");
  start.add_task_replicas(1);
  start.add_task_replicas(2);
  return start;
}

TEST(MemberEnvironment, IsAsPromised) {
  v1::Prepared prepared;
  v1::NamedPort& port = *prepared.add_ports();
  port.set_name("tensor-board");
  port.set_port(20'009);
  const Environment expected = {
      {"PATH", "/bin"},
      {"LR", "0.1"},
      {"MUSTER_JOB_ID", "12"},
      {"MUSTER_ARRAY_INDEX", "3"},
      {"MUSTER_ATTEMPT", "2"},
      {"MUSTER_FENCE", "77-000000000000beef"},
      {"MUSTER_TASK", "actor"},
      {"MUSTER_TASK_INDEX", "1"},
      {"MUSTER_HOSTS", "10.0.0.1:20001,10.0.0.2:20002,10.0.0.3:20003"},
      {"MUSTER_END_TIME", "1700000123"},
      {"MUSTER_PORT_TENSOR_BOARD", "20009"},
      {"RANK", "2"},
      {"WORLD_SIZE", "3"},
      {"LOCAL_RANK", "0"},
      {"LOCAL_WORLD_SIZE", "1"},
      {"MASTER_ADDR", "10.0.0.1"},
      {"MASTER_PORT", "20001"},
      {"CUDA_VISIBLE_DEVICES", "3,5"},
      {"PET_NNODES", "3"},
      {"PET_NODE_RANK", "2"},
      {"PET_NPROC_PER_NODE", "1"},
      {"PET_MASTER_ADDR", "10.0.0.1"},
      {"PET_MASTER_PORT", "20001"},
      {"TF_CONFIG",
       R"({"cluster":{"actor":["10.0.0.2:20002","10.0.0.3:20003"],"learner":["10.0.0.1:20001"]},)"
       R"("task":{"index":1,"type":"actor"}})"},
  };
  EXPECT_EQ(member_environment(actor_order(), prepared, actor_start(), {{"PATH", "/bin"}}), expected);
}

TEST(MemberEnvironment, WithoutDevicesNoneAreVisible) {
  v1::PrepareOrder order = actor_order();
  order.clear_devices();
  order.mutable_member()->set_element(0);
  v1::StartOrder start = actor_start();
  start.set_end_wall_ms(0);
  const Environment env = member_environment(order, v1::Prepared(), start, {});
  EXPECT_EQ(env.at("CUDA_VISIBLE_DEVICES"), "");
  EXPECT_EQ(env.count("MUSTER_ARRAY_INDEX"), 0u);
  EXPECT_EQ(env.count("MUSTER_END_TIME"), 0u);
}

TEST(MemberEnvironment, WhatNoProcessCanBeGivenIsNamed) {
  Environment env = {{"A", "1"}, {"MUSTER_HOSTS", std::string(131'072 - 14, 'x')}};
  EXPECT_THAT(take_out_too_long(&env), ::testing::IsEmpty());
  env["MUSTER_HOSTS"] += 'x';
  EXPECT_THAT(take_out_too_long(&env), ::testing::ElementsAre("MUSTER_HOSTS"));
  EXPECT_EQ(env, (Environment{{"A", "1"}}));
}

TEST(GpuModel, IsTheNameThatPeopleUse) {
  EXPECT_EQ(gpu_model("NVIDIA A100-SXM4-80GB"), "a100");
  EXPECT_EQ(gpu_model("NVIDIA A100 80GB PCIe"), "a100");
  EXPECT_EQ(gpu_model("NVIDIA H100 80GB HBM3"), "h100");
  EXPECT_EQ(gpu_model("NVIDIA H200"), "h200");
  EXPECT_EQ(gpu_model("Tesla V100-SXM2-16GB"), "v100");
  EXPECT_EQ(gpu_model("NVIDIA GeForce RTX 4090"), "rtx4090");
  EXPECT_EQ(gpu_model("NVIDIA RTX A6000"), "a6000");
  EXPECT_EQ(gpu_model("NVIDIA L40S"), "l40s");
  EXPECT_EQ(gpu_model(""), "gpu");
}

TEST(Inventory, ReadsWhatTheKernelSays) {
  EXPECT_EQ(memory_total_bytes("MemTotal:       16384 kB\nMemFree: 1 kB\n"), 16'777'216);
  EXPECT_EQ(memory_total_bytes("nothing"), 0);
  EXPECT_EQ(signal_number("TERM"), 15);
  EXPECT_EQ(signal_number("SIGUSR1"), 10);
  EXPECT_EQ(signal_number("NOSUCH"), 0);
  EXPECT_EQ(local_address_towards("127.0.0.1:7070"), "127.0.0.1");
}

TEST(Inventory, DeclaredDevicesAreSaidToBeSo) {
  AgentOptions options;
  options.cpu_milli = 8000;
  options.memory_bytes = 1 << 30;
  options.gpus = 2;
  options.gpu_model = "a100";
  options.labels["rack"] = "r1";
  const v1::NodeDescription node = describe_node(options, "10.0.0.9", {"a note"});
  EXPECT_EQ(node.cpu_milli(), 8000);
  ASSERT_EQ(node.devices_size(), 2);
  EXPECT_EQ(node.devices(1).index(), 1u);
  EXPECT_EQ(node.devices(1).model(), "a100");
  EXPECT_EQ(node.labels().at("rack"), "r1");
  EXPECT_THAT(node.notes(), ::testing::ElementsAre("GPUs are as declared, not as found", "a note"));
}

TEST_F(Scratch, CgroupsV1AreWrittenBelowOurOwn) {
  const std::string mounts = absl::StrCat("cgroup ", dir_, "/memory cgroup rw,memory 0 0\ncgroup ", dir_,
                                          "/cpu cgroup rw,cpu,cpuacct 0 0\n");
  const std::string own = "4:memory:/pod\n1:cpu,cpuacct:/\n";
  std::filesystem::create_directories(dir_ + "/memory/pod");
  std::filesystem::create_directories(dir_ + "/cpu");
  // The kernel makes these files with the directory; here they are made beforehand.
  put("/memory/pod/muster/n1/memory.limit_in_bytes", "");
  put("/cpu/muster/n1/cpu.cfs_quota_us", "");
  put("/memory/pod/muster/n1/1.0.1.0/memory.limit_in_bytes", "");
  put("/memory/pod/muster/n1/1.0.1.0/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n");
  put("/cpu/muster/n1/1.0.1.0/cpu.cfs_quota_us", "");
  std::vector<std::string> notes;
  const CgroupTrees trees = find_cgroups(mounts, own, "n1", &notes);
  EXPECT_FALSE(trees.v2);
  EXPECT_THAT(notes, ::testing::ElementsAre("no cgroup limits: pids controller is not writable"));
  TaskCgroup cgroup(trees, "1.0.1.0", {1500, 1 << 20, 100});
  ASSERT_TRUE(cgroup.create().ok());
  EXPECT_EQ(get("/memory/pod/muster/n1/1.0.1.0/memory.limit_in_bytes"), "1048576");
  EXPECT_EQ(get("/cpu/muster/n1/1.0.1.0/cpu.cfs_quota_us"), "150000");
  EXPECT_EQ(cgroup.oom_kills(), 2);
}

TEST_F(Scratch, CgroupsV2AreOneTree) {
  const std::string mounts = absl::StrCat("cgroup2 ", dir_, " cgroup2 rw 0 0\n");
  put("/cgroup.controllers", "cpu memory pids\n");
  for (const char* group : {"", "/muster", "/muster/n1"})
    put(absl::StrCat(group, "/cgroup.subtree_control"), "");
  for (const char* file : {"memory.max", "memory.swap.max", "cpu.max", "pids.max"})
    put(absl::StrCat("/muster/n1/1.0.1.0/", file), "");
  put("/muster/n1/1.0.1.0/memory.events", "low 0\nhigh 0\nmax 5\noom 1\noom_kill 1\n");
  std::vector<std::string> notes;
  const CgroupTrees trees = find_cgroups(mounts, "0::/\n", "n1", &notes);
  EXPECT_TRUE(trees.v2);
  EXPECT_TRUE(notes.empty());
  EXPECT_EQ(get("/muster/cgroup.subtree_control"), "+memory +cpu +pids");
  TaskCgroup cgroup(trees, "1.0.1.0", {500, 1 << 20, 100});
  ASSERT_TRUE(cgroup.create().ok());
  EXPECT_EQ(get("/muster/n1/1.0.1.0/memory.max"), "1048576");
  EXPECT_EQ(get("/muster/n1/1.0.1.0/memory.swap.max"), "0");
  EXPECT_EQ(get("/muster/n1/1.0.1.0/cpu.max"), "50000 100000");
  EXPECT_EQ(get("/muster/n1/1.0.1.0/pids.max"), "100");
  EXPECT_EQ(cgroup.oom_kills(), 1);
}

TEST_F(Scratch, CgroupsAbsentAreSaid) {
  std::vector<std::string> notes;
  const CgroupTrees trees = find_cgroups("", "", "n1", &notes);
  EXPECT_TRUE(trees.distinct().empty());
  EXPECT_THAT(notes,
              ::testing::ElementsAre("no cgroup limits: memory, cpu, pids controllers are not writable"));
}

TEST(Ports, ALeaseIsExclusiveOnTheMachine) {
  PortRange one(21'000, 21'003);
  PortRange other(21'000, 21'003);
  std::vector<PortLease> leases;
  std::set<uint32_t> ports;
  for (int i = 0; i < 4; ++i) {
    absl::StatusOr<PortLease> lease = (i % 2 == 0 ? one : other).lease();
    ASSERT_TRUE(lease.ok()) << lease.status();
    EXPECT_TRUE(ports.insert(lease->port).second) << lease->port << " was leased twice";
    leases.push_back(std::move(*lease));
  }
  EXPECT_EQ(one.lease().status().message(),
            "no free port in 21000-21003; start the agent with a larger --ports");
  const uint32_t freed = leases[1].port;
  leases.erase(leases.begin() + 1);
  ASSERT_EQ(one.lease()->port, freed);
}

TEST_F(Scratch, ATornRecordOfATaskIsSkipped) {
  const TaskDir dir(dir_ + "/12.4.2.2");
  v1::PrepareOrder order = actor_order();
  v1::Prepared prepared;
  prepared.set_port(20'005);
  ASSERT_TRUE(dir.create(order, prepared).ok());
  v1::StartOrder start = actor_start();
  start.set_run(1);
  ASSERT_TRUE(dir.add_start(start).ok());
  ASSERT_TRUE(dir.add_supervisor({"boot", 42, 4711}).ok());
  const std::string whole = *read_file(dir.file("task"));
  v1::Exited end;
  end.set_run(1);
  end.set_code(3);
  for (size_t cut = 1; cut < 40; ++cut) {
    ASSERT_TRUE(write_atomic(dir.file("task"), whole.substr(0, whole.size() - cut)).ok());
    ASSERT_TRUE(dir.add_started(1).ok());
    ASSERT_TRUE(dir.add_end(end).ok());
    const absl::StatusOr<TaskRecord> record = dir.read();
    ASSERT_TRUE(record.ok()) << record.status();
    EXPECT_EQ(record->prepared.port(), 20'005u);
    EXPECT_FALSE(record->supervisor.has_value());
    EXPECT_EQ(record->started_run, 1u);
    ASSERT_TRUE(record->end.has_value());
    EXPECT_EQ(record->end->code(), 3);
    EXPECT_FALSE(record->told);
  }
  ASSERT_TRUE(dir.add_told().ok());
  EXPECT_TRUE(dir.read()->told);
}

TEST_F(Scratch, TheDirectoryKeepsItsNodesName) {
  bool fresh = false;
  const absl::StatusOr<NodeIdentity> first = load_identity(dir_, "", "a1", &fresh);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_TRUE(fresh);
  ASSERT_TRUE(save_identity(dir_, *first).ok());
  const absl::StatusOr<NodeIdentity> again = load_identity(dir_, "", "renamed", &fresh);
  EXPECT_FALSE(fresh);
  EXPECT_EQ(again->name, "a1");
  EXPECT_EQ(again->incarnation, first->incarnation);
  EXPECT_EQ(load_identity(dir_, "b2", "", &fresh).status().message(),
            absl::StrCat(dir_, " belongs to node 'a1', not 'b2': use its name, or another --dir"));
  // After a boot of the machine it is another incarnation.
  NodeIdentity rebooted = *first;
  rebooted.boot = "an earlier boot";
  ASSERT_TRUE(save_identity(dir_, rebooted).ok());
  EXPECT_NE(load_identity(dir_, "", "", &fresh)->incarnation, first->incarnation);
  EXPECT_TRUE(fresh);
}

}  // namespace
}  // namespace muster::agent
