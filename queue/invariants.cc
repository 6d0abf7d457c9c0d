#include <cstdio>
#include <cstdlib>

#include "queue/state.h"

namespace muster::queue {
namespace {

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "invariant broken: %s\n", what);
  std::abort();
}

void check_gang(const State& state, const Job& job) {
  const v1::JobState& s = job.state;
  require(!terminal(s.phase()), "a job that has ended is not among the live ones");
  if (job.is_array()) return;
  if (!holds_places(s.phase())) return;
  require(static_cast<uint32_t>(s.attempt().members_size()) == job.info->members,
          "a gang has all of its places");
  for (int rank = 0; rank < s.attempt().members_size(); ++rank) {
    const auto node = state.nodes.find(s.attempt().members(rank).node());
    require(node != state.nodes.end(), "a member's node is known");
    require(node->second.members.contains({job.key(), static_cast<uint32_t>(rank)}),
            "a node knows its members");
  }
}

}  // namespace

void State::check_invariants() const {
  State fresh;
  for (const auto& [name, node] : nodes) fresh.load_node(node.state);
  for (const auto& [name, queue] : queues) fresh.load_queue(queue);
  fresh.load_meta(meta);
  for (const auto& [key, job] : jobs) {
    check_gang(*this, *job);
    fresh.load_job(job->state, job->info->bytes);
  }
  fresh.finish_load();
  require(fresh.cluster == cluster, "what is held on the nodes is what live attempts hold");
  require(fresh.usage == usage, "what the queues use is what live attempts hold");
  require(fresh.counts == counts, "gangs are counted by queue");
  require(fresh.deadlines == deadlines, "deadlines are those of the gangs");
  require(fresh.live_elements == live_elements, "arrays know their live elements");
  require(fresh.planner.pending() == planner.pending(), "the planner has what waits");
  for (const auto& [name, node] : fresh.nodes)
    require(node.members == nodes.at(name).members, "a node has the members that are placed there");
  for (const auto& [name, node] : cluster.nodes()) {
    require(node.used.gpus >= 0 && node.used.cpu_milli >= 0 && node.used.memory_bytes >= 0,
            "nothing is given back twice");
  }
}

}  // namespace muster::queue
