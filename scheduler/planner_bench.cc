// What the planner costs: `build/planner_bench` prints one JSON object a line. Times are medians of several
// runs.
#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <string>

#include "scheduler/planner.h"

namespace muster::scheduler {
namespace {

double milliseconds(const std::function<void()>& run) {
  const auto start = std::chrono::steady_clock::now();
  run();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

// The median over fresh worlds: `make` is not measured, `run` is.
template <typename World>
double median_ms(const std::function<World()>& make, const std::function<void(World&)>& run) {
  std::vector<double> all;
  for (int i = 0; i < 7; ++i) {
    World world = make();
    all.push_back(milliseconds([&] { run(world); }));
  }
  std::sort(all.begin(), all.end());
  return all[all.size() / 2];
}

void print(const char* bench, double value, const char* unit) {
  std::printf("{\"bench\": \"%s\", \"%s\": %.4f}\n", bench, unit, value);
}

struct World {
  Cluster cluster;
  Queues queues;
  Planner planner;
  uint64_t next = 1;

  explicit World(int nodes, int gpus = 0) {
    std::vector<DeviceSlot> devices;
    for (int i = 0; i < gpus; ++i) devices.push_back({static_cast<uint32_t>(i), "a100"});
    for (int i = 0; i < nodes; ++i) {
      const std::string name = "node-" + std::to_string(100'000 + i);
      cluster.describe(name, 1, {512'000, int64_t{1} << 40, gpus}, devices,
                       {{"rack", "r" + std::to_string(i / 16)}});
      cluster.set_schedulable(name, true);
    }
  }
  void add(const std::shared_ptr<const Shape>& shape, int count) {
    for (int i = 0; i < count; ++i, ++next) planner.add({{next, 0}, shape, static_cast<int64_t>(next), 0, 1});
  }
  Round plan() { return planner.plan(cluster, queues, 0, {}); }
};

std::shared_ptr<const Shape> shape(uint32_t members, int64_t cpu_milli, int64_t gpus,
                                   const std::string& pack = "") {
  auto out = std::make_shared<Shape>();
  out->queue = "default";
  out->pack_label = pack;
  TaskRequest task;
  task.name = "main";
  task.members = members;
  task.each = {cpu_milli, 0, gpus};
  out->tasks.push_back(task);
  return out;
}

size_t allocated_bytes() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

void index_costs() {
  constexpr int kGangs = 100'000;
  constexpr int kShapes = 10;
  std::vector<std::shared_ptr<const Shape>> shapes;
  for (int i = 0; i < kShapes; ++i) shapes.push_back(shape(2, 1'000'000 + i, 0));
  World w(3);
  const size_t before = allocated_bytes();
  const double add_ms = milliseconds([&] {
    for (int i = 0; i < kGangs / kShapes; ++i) {
      for (const auto& each : shapes) w.add(each, 1);
    }
  });
  print("add", add_ms * 1e6 / kGangs, "ns");
  print("memory_per_pending_gang", static_cast<double>(allocated_bytes() - before) / kGangs, "bytes");
  print("round_all_shapes_fail", milliseconds([&] { w.plan(); }), "ms");
  w.add(shapes[0], 1000);
  print("round_after_1000_of_failed_shapes", milliseconds([&] { w.plan(); }), "ms");
  print("due",
        milliseconds([&] {
          for (int i = 0; i < kGangs; ++i) w.planner.due(w.cluster, w.queues, 0);
        }) * 1e6 /
            kGangs,
        "ns");
  print("remove",
        milliseconds([&] {
          for (uint64_t id = 1; id <= kGangs; ++id) w.planner.remove({id * 7919 % kGangs + 1, 0});
        }) * 1e6 /
            kGangs,
        "ns");
  std::vector<std::shared_ptr<const Shape>> own;
  for (int i = 0; i < 10'000; ++i) own.push_back(shape(2, 1'000'000, 0));
  print("add_equal_shape_of_its_own",
        milliseconds([&] {
          for (const auto& each : own) w.add(each, 1);
        }) * 1e6 /
            10'000,
        "ns");
}

void round_costs() {
  const auto trivial = shape(1, 100, 0);
  const auto round = [](World& w) { w.plan(); };
  const auto jobs = [&](int nodes, int gpus, const std::shared_ptr<const Shape>& each, int count) {
    return [=] {
      World w(nodes, gpus);
      w.add(each, count);
      return w;
    };
  };
  print("place_1000_trivial_on_3_nodes", median_ms<World>(jobs(3, 0, trivial, 1000), round), "ms");
  print("place_1_trivial_on_10000_nodes", median_ms<World>(jobs(10'000, 8, trivial, 1), round), "ms");
  const auto planned = [&] {
    World w(10'000, 8);
    w.add(trivial, 1);
    w.plan();
    w.planner.remove({1, 0});
    w.cluster.hold("node-100000", {{100, 0, 0}, {}, {1, 0}});
    w.add(trivial, 1);
    return w;
  };
  print("place_1_more_on_10000_nodes", median_ms<World>(planned, round), "ms");
  print("fail_1_on_10000_nodes", median_ms<World>(jobs(10'000, 8, shape(1, 1'000'000, 0), 1), round), "ms");
  print("place_1000_trivial_on_10000_nodes", median_ms<World>(jobs(10'000, 8, trivial, 1000), round), "ms");
  print("place_1000_gangs_of_16x8_gpus_on_10000_nodes",
        median_ms<World>(jobs(10'000, 8, shape(16, 8000, 8), 600), round), "ms");
  print("place_packed_gang_of_16x8_gpus_on_10000_nodes",
        median_ms<World>(jobs(10'000, 8, shape(16, 8000, 8, "rack"), 1), round), "ms");
  print("place_gang_of_8192_on_10000_nodes",
        median_ms<World>(jobs(10'000, 8, shape(8192, 8000, 8), 1), round), "ms");
  const auto mixed = [&] {
    World w(10'000, 8);
    for (int i = 0; i < 1000; ++i) w.add(shape(1, 100 + i % 20, i % 2), 1);
    return w;
  };
  print("place_1000_of_20_shapes_on_10000_nodes", median_ms<World>(mixed, round), "ms");
}

}  // namespace
}  // namespace muster::scheduler

int main() {
  muster::scheduler::index_costs();
  muster::scheduler::round_costs();
}
