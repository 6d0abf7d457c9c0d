#include "tools/spec/options.h"

#include <algorithm>

namespace muster::spec {

const std::vector<Option>& options() {
  using enum OptionKind;
  static const std::vector<Option> kOptions = {
      {"name", "name", kScalar, "NAME", "default: from the command"},
      {"queue", "queue", kScalar, "NAME", "default: default"},
      {"user", "user", kScalar, "NAME", "default: you"},
      {"priority", "priority", kScalar, "N", "higher first within its queue"},
      {"preemptible", "preemptible", kFlag, "", "may exceed its queue's quota, and be evicted"},
      {"hold", "hold", kFlag, "", "submitted held; `muster release` lets it go"},
      {"replicas", "replicas", kScalar, "N", "members of the gang, all or nothing"},
      {"cpu", "resources.cpu", kScalar, "N", "of each member: 4, 0.5, 500m"},
      {"memory", "resources.memory", kScalar, "SIZE", "of each member: 16Gi, 500M"},
      {"gpu", "resources.gpu", kScalar, "N", "of each member, whole devices"},
      {"shm", "resources.shm", kScalar, "SIZE", "of each member"},
      {"gpu-model", "gpu_model", kList, "MODEL,..", "any of these"},
      {"require", "require", kMapOfLists, "LABEL=VALUE,..", "nodes must have one of the values"},
      {"not", "not", kMapOfLists, "LABEL=VALUE,..", "nodes must have none of the values"},
      {"prefer", "prefer", kMapOfLists, "LABEL=VALUE,..", "nodes should have one of the values"},
      {"pack", "pack", kScalarOrMap, "LABEL|prefer=LABEL", "all members under one value of this label"},
      {"per-node", "per_node", kScalar, "N", "at most so many members on one host"},
      {"script", "script", kScalar, "TEXT", "run by /bin/sh, instead of a command"},
      {"env", "env", kMap, "NAME=VALUE", "in the members' environment"},
      {"ports", "ports", kMap, "NAME=auto", "a port of the agent's range, in MUSTER_PORT_NAME"},
      {"workdir", "workdir", kScalar, "DIR", "an absolute path on the nodes"},
      {"time-limit", "time_limit", kScalar, "TIME", "of each attempt: 30s, 12h, 1h30m"},
      {"expected", "expected", kScalar, "TIME", "estimate of the running time"},
      {"grace", "grace", kScalar, "TIME", "between signal and kill; default 30s"},
      {"signal", "signal", kScalar, "NAME", "what asks members to stop; default TERM"},
      {"retries", "retries", kScalarOrMap, "N|own=N,infrastructure=N,start=N", "default 0, 10 and 5"},
      {"success", "success", kScalar, "all|TASK", "whose end decides; default all"},
      {"after-ok", "after.ok", kList, "JOB,..", "starts once these have succeeded"},
      {"after-any", "after.any", kList, "JOB,..", "starts once these have ended"},
      {"array", "array", kScalarOrMap, "N", "so many elements, MUSTER_ARRAY_INDEX 0 to N-1"},
      {"array-running", "array.running", kScalar, "N", "at most so many elements at once"},
      {"sweep", "sweep", kMapOfLists, "NAME=V,V|A..B",
       "an array over all combinations; {NAME} in the command"},
      {"start-limit", "start_limit", kScalar, "TIME", "from placement until all have started; default 10m"},
      {"on-disconnect", "on_disconnect", kScalarOrMap, "keep|stop_after=TIME",
       "when a node is cut off; default keep"},
      {"label", "labels", kMap, "NAME=VALUE", "yours, to find it again"},
      {"processes", "processes", kScalar, "one", "per_gpu is planned"},
      {"image", "image", kScalar, "none", "images are planned"},
      {"gpu-memory", "resources.gpu_memory", kScalar, "SIZE", "planned"},
      {"secrets", "secrets", kMap, "NAME=REF", "planned"},
      {"checkpoint", "checkpoint", kScalar, "TIME", "planned"},
      {"resize-every", "resize_every", kScalar, "TIME", "planned"},
      {"notify", "notify", kList, "URL,..", "planned"},
      {"mounts", "mounts", kScalar, "SOURCE", "planned"},
  };
  return kOptions;
}

std::string option_of_path(std::string_view path) {
  const Option* best = nullptr;
  for (const Option& option : options()) {
    const bool within = path.starts_with(option.path) &&
                        (path.size() == option.path.size() || path[option.path.size()] == '.');
    if (within && (best == nullptr || option.path.size() > best->path.size())) best = &option;
  }
  std::string out = "--";
  out += best != nullptr ? best->name : path;
  if (best == nullptr) std::replace(out.begin() + 2, out.end(), '_', '-');
  return path == "command" ? "the command after --" : out;
}

}  // namespace muster::spec
