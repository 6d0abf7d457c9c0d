// Another process of this program (`muster server …`), for a bench. It dies with the thread that started it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace muster::bench {

class Child {
 public:
  // What it says on stderr goes to the end of the file `errors`, which failures quote from.
  static absl::StatusOr<std::unique_ptr<Child>> start(std::vector<std::string> arguments,
                                                      const std::string& errors);
  ~Child();  // kills it if it lives
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Waits for a line on its stdout that starts with `prefix`; gives the rest of it.
  absl::StatusOr<std::string> line(const std::string& prefix, int timeout_ms);
  void kill();          // SIGKILL, and waits
  absl::Status stop();  // SIGTERM, and waits; an error when it had died before or ends badly

  pid_t pid() const { return pid_; }
  absl::StatusOr<int64_t> rss_bytes() const;

 private:
  Child(pid_t pid, int output, std::string name, std::string errors)
      : pid_(pid), output_(output), name_(std::move(name)), errors_(std::move(errors)) {}
  std::string last_errors() const;

  pid_t pid_;  // 0: it has ended
  int output_;
  const std::string name_, errors_;
  std::string text_;  // read from output_, not yet looked at
};

}  // namespace muster::bench
