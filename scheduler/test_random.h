// Small random clusters and gangs for the property tests.
#pragma once

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <string>

#include "scheduler/test_world.h"

namespace muster::scheduler {

// Evenly over the whole range, from the first case on.
inline int pick(int from, int below) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(from, below));
}
inline bool one_in(int count) {
  return pick(0, count) == 0;
}

// A few devices of two models, mostly in one of two racks.
inline NodeSpec random_node(const std::string& name) {
  NodeSpec spec;
  spec.name = name;
  spec.cpu = pick(1, 10);
  spec.memory_gi = pick(1, 8);
  for (int device = pick(0, 5); device > 0; --device) spec.gpus.push_back(one_in(2) ? "t4" : "a100");
  if (const int rack = pick(0, 4)) spec.labels["rack"] = rack <= 2 ? "r1" : "r2";
  return spec;
}

inline void random_task(Ask& ask) {
  ask.cpu(pick(0, 4)).memory_gi(pick(0, 3)).gpu(one_in(2) ? 0 : pick(1, 4));
  if (one_in(4)) ask.model("a100");
  if (one_in(5)) ask.model("t4");
  if (one_in(6)) ask.require("rack", {one_in(2) ? "r1" : "r2"});
  if (one_in(6)) ask.exclude("rack", {"r1"});
  if (one_in(4)) ask.prefer("rack", {"r2"});
  if (one_in(3)) ask.per_node(static_cast<uint32_t>(pick(1, 3)));
  if (one_in(4)) ask.unpacked();
}

inline Ask random_ask(int tasks) {
  Ask ask(static_cast<uint32_t>(pick(1, 6)));
  random_task(ask);
  for (int i = 1; i < tasks; ++i) {
    ask.task(static_cast<uint32_t>(pick(1, 4)));
    random_task(ask);
  }
  if (one_in(3)) ask.pack("rack", one_in(3));
  return ask;
}

}  // namespace muster::scheduler
