#include "agent/member_env.h"

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace muster::agent {
namespace {

// {"cluster": {"learner": ["host:port"], …}, "task": {"type": "actor", "index": 3}}
std::string tf_config(const v1::PrepareOrder& order, const v1::StartOrder& start) {
  nlohmann::json cluster = nlohmann::json::object();
  int rank = 0;
  for (int task = 0; task < start.task_names_size() && task < start.task_replicas_size(); ++task) {
    nlohmann::json hosts = nlohmann::json::array();
    for (uint32_t i = 0; i < start.task_replicas(task) && rank < start.hosts_size(); ++i)
      hosts.push_back(start.hosts(rank++));
    cluster[start.task_names(task)] = std::move(hosts);
  }
  const nlohmann::json out = {{"cluster", std::move(cluster)},
                              {"task", {{"type", order.task().name()}, {"index", order.task_index()}}}};
  return out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// MUSTER_PORT_<NAME>: upper-cased, and what no variable's name can hold becomes an underscore.
std::string port_variable(const std::string& name) {
  std::string out = "MUSTER_PORT_";
  for (const char c : name)
    out += absl::ascii_isalnum(static_cast<unsigned char>(c))
               ? absl::ascii_toupper(static_cast<unsigned char>(c))
               : '_';
  return out;
}

}  // namespace

Environment base_environment() {
  Environment out;
  for (const char* name : {"PATH", "HOME", "LANG", "USER"})
    if (const char* value = getenv(name)) out[name] = value;
  out.try_emplace("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
  out.try_emplace("HOME", "/");
  return out;
}

std::vector<std::string> take_out_too_long(Environment* environment) {
  constexpr size_t kEntryBytesMax = (128 << 10) - 2;  // with '=' and the final zero
  std::vector<std::string> out;
  for (auto it = environment->begin(); it != environment->end();) {
    const bool fits = it->first.size() + it->second.size() <= kEntryBytesMax;
    if (!fits) out.push_back(it->first);
    it = fits ? std::next(it) : environment->erase(it);
  }
  return out;
}

Environment member_identity(const v1::PrepareOrder& order) {
  const v1::MemberRef& member = order.member();
  Environment out;
  out["MUSTER_JOB_ID"] = absl::StrCat(member.job());
  if (member.element() != 0) out["MUSTER_ARRAY_INDEX"] = absl::StrCat(member.element() - 1);
  out["MUSTER_FENCE"] =
      absl::StrCat(member.fence().position(), "-", absl::Hex(member.fence().nonce(), absl::kZeroPad16));
  out["MUSTER_TASK"] = order.task().name();
  out["MUSTER_TASK_INDEX"] = absl::StrCat(order.task_index());
  return out;
}

Environment member_environment(const v1::PrepareOrder& order, const v1::Prepared& prepared,
                               const v1::StartOrder& start, Environment base) {
  Environment out = std::move(base);
  for (const auto& [name, value] : order.task().env()) out[name] = value;
  for (const auto& [name, value] : order.env()) out[name] = value;
  for (auto& [name, value] : member_identity(order)) out[name] = value;

  const std::string rank = absl::StrCat(order.member().rank());
  const std::string world = absl::StrCat(order.world_size());
  const std::string master_port = absl::StrCat(start.master_port());
  out["MUSTER_ATTEMPT"] = absl::StrCat(order.member().attempt());
  out["MUSTER_HOSTS"] = absl::StrJoin(start.hosts(), ",");
  if (start.end_wall_ms() > 0) out["MUSTER_END_TIME"] = absl::StrCat(start.end_wall_ms() / 1000);
  for (const v1::NamedPort& port : prepared.ports())
    out[port_variable(port.name())] = absl::StrCat(port.port());

  out["RANK"] = rank;
  out["WORLD_SIZE"] = world;
  out["LOCAL_RANK"] = "0";
  out["LOCAL_WORLD_SIZE"] = "1";
  out["MASTER_ADDR"] = start.master_addr();
  out["MASTER_PORT"] = master_port;
  out["CUDA_VISIBLE_DEVICES"] = absl::StrJoin(order.devices(), ",");
  out["PET_NNODES"] = world;
  out["PET_NODE_RANK"] = rank;
  out["PET_NPROC_PER_NODE"] = "1";
  out["PET_MASTER_ADDR"] = start.master_addr();
  out["PET_MASTER_PORT"] = master_port;
  if (start.task_names_size() > 1) out["TF_CONFIG"] = tf_config(order, start);
  return out;
}

}  // namespace muster::agent
