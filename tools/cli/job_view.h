// A job as verbs show it, in words and as JSON.
#pragma once

#include <string>

#include "muster/v1/job.pb.h"
#include "muster/v1/service.pb.h"
#include "tools/cli/json.h"

namespace muster::tools {

bool terminal(v1::Phase phase);
std::string phase_name(v1::Phase phase);               // "RUNNING"
std::string reason_name(v1::Reason reason);            // "EXIT"; "" for none
std::string end_name(v1::AttemptEnd end);              // "SUCCEEDED"; "" while it has not ended
std::string member_phase_name(v1::MemberPhase phase);  // "RUNNING"

// {schema, id, element?, name, queue, user, state, reason, job_exit, message?, pending?, attempts}. reason
// and job_exit are null until the job has ended. Members' tasks are named when `view` has its spec.
Json job_json(const v1::JobView& view);

// The exit code that `wait` and `run` pass on: 0, the job's own, 100, 103; 101 while it has not ended.
int exit_code_of(const v1::JobView& view);

// What the job waits for, or how it ended, in a few words; "" when there is nothing to say.
std::string why_words(const v1::JobState& state, const std::string& pending_reason);

}  // namespace muster::tools
