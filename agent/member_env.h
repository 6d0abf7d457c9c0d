// The environment of a member, as docs and job.md promise it: MUSTER_*, RANK and its kin, what torchrun and
// TensorFlow read, and the job's own. Pure: the same orders give the same environment.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "muster/v1/service.pb.h"

namespace muster::agent {

using Environment = std::map<std::string, std::string>;

// What an unset CUDA_VISIBLE_DEVICES would mean is every device, so it is always set: "" for a member that
// has none. `base` is what the member has from its node (PATH, HOME, …); the job's own variables go before
// it, and Muster's before both.
Environment member_environment(const v1::PrepareOrder& order, const v1::Prepared& prepared,
                               const v1::StartOrder& start, Environment base);

// PATH, HOME, LANG and USER of the calling process, with defaults for the first two.
Environment base_environment();

// Takes out what no process can be given (a variable's name and value are at most 128 KiB) and returns the
// names: the MUSTER_HOSTS of a gang of thousands can be such.
std::vector<std::string> take_out_too_long(Environment* environment);

// The variables that name one member and no other: how its processes are recognised.
Environment member_identity(const v1::PrepareOrder& order);

}  // namespace muster::agent
