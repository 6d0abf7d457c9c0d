// How jobs, nodes and queues are shown, from the state. On the engine's thread.
#pragma once

#include <string>

#include "muster/v1/service.pb.h"
#include "queue/engine.h"

namespace muster::server {

// What stands in the way of a job that waits; empty blockers when nothing does. Counts nodes: for one job at
// a time.
v1::ExplainReply explain_job(const queue::Engine& engine, const queue::Job& job);

// Adds what the state says of this moment: position, times, unreachable, why it waits (cheaply, from the last
// round).
void complete_view(const queue::State& state, int64_t wall_ms, v1::JobView* view);

v1::NodeView node_view(const queue::Engine& engine, const queue::NodeEntry& node);
v1::ListQueuesReply list_queues(const queue::State& state);
v1::ServerStatus server_status(const queue::Engine& engine, const std::string& trouble);

}  // namespace muster::server
