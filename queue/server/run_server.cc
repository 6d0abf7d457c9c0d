// `muster server`: the process around a Server.
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/file.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <random>

#include "absl/strings/str_cat.h"
#include "queue/server/server.h"
#include "spdlog/sinks/stdout_sinks.h"
#include "spdlog/spdlog.h"
#include "storage/open_log.h"

namespace muster::server {
namespace {

namespace fs = std::filesystem;

constexpr int kLookMs = 50;

// Waits a moment for SIGTERM or SIGINT. True: one came.
bool signalled(const sigset_t& signals) {
  const timespec moment{0, kLookMs * 1'000'000};
  return sigtimedwait(&signals, nullptr, &moment) > 0;
}

absl::Status lock_directory(const std::string& directory) {
  std::error_code error;
  fs::create_directories(directory, error);
  if (error) return absl::UnavailableError(absl::StrCat("--dir ", directory, ": ", error.message()));
  const std::string path = directory + "/lock";
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return absl::UnavailableError(absl::StrCat(path, ": can't be created"));
  if (flock(fd, LOCK_EX | LOCK_NB) == 0)
    return absl::OkStatus();  // kept open: locked as long as the process lives
  close(fd);
  return absl::FailedPreconditionError(
      absl::StrCat("--dir ", directory, ": another server uses it; give each server a directory of its own"));
}

// The server's stable identity, made at the first start.
absl::StatusOr<std::string> server_identity(const std::string& directory) {
  const std::string path = directory + "/server-id";
  std::string id;
  if (std::ifstream(path) >> id && !id.empty()) return id;
  std::random_device device;
  id = absl::StrCat(absl::Hex(device(), absl::kZeroPad8), absl::Hex(device(), absl::kZeroPad8));
  std::ofstream out(path + ".new");
  out << id << "\n";
  out.close();
  std::error_code error;
  fs::rename(path + ".new", path, error);
  if (!out || error) return absl::UnavailableError(absl::StrCat(path, ": can't be written"));
  return id;
}

absl::StatusOr<DriverOptions> driver_options(const ServerOptions& options, const sigset_t& signals) {
  auto address = storage::parse_log_address(options.log);
  if (!address.ok()) return address.status();
  if (absl::Status locked = lock_directory(options.directory); !locked.ok()) return locked;
  auto identity = server_identity(options.directory);
  if (!identity.ok()) return identity.status();
  auto log = storage::open_log(*address, storage::LogMode::kWrite);
  std::string said;
  while (absl::IsUnavailable(log.status())) {
    if (said != log.status().message()) spdlog::warn("{}; trying again", std::string(log.status().message()));
    said = std::string(log.status().message());
    for (int i = 0; i < 10; ++i) {
      if (signalled(signals)) return absl::CancelledError("stopped before the log could be opened");
    }
    log = storage::open_log(*address, storage::LogMode::kWrite);
  }
  if (!log.ok()) return log.status();
  DriverOptions out;
  const std::string cell = address->cell.empty() ? "local" : address->cell;
  out.engine = engine_options(cell, *identity, (*log)->exclusive(), options.lease_ms);
  out.log = *std::move(log);
  out.directory = options.directory;
  out.open_store = [directory = options.directory + "/state"](bool anew, std::string* set_aside) {
    return open_state_directory(directory, anew, set_aside);
  };
  return out;
}

absl::Status check(const ServerOptions& options) {
  if (options.directory.empty())
    return absl::InvalidArgumentError("--dir: a directory for the server's state is needed");
  if (!options.shared.empty())
    return absl::InvalidArgumentError("--shared: blobs and snapshots are not served yet; leave it out");
  if (options.lease_ms < 100 || options.lease_ms > 600'000)
    return absl::InvalidArgumentError(
        absl::StrCat("--lease: ", options.lease_ms, " ms is not allowed; it must be 100 ms to 10 m"));
  return absl::OkStatus();
}

int fail(const absl::Status& status) {
  spdlog::error("{}", std::string(status.message()));
  return 1;
}

}  // namespace

absl::StatusOr<std::shared_ptr<storage::StateStore>> open_state_directory(const std::string& directory,
                                                                          bool anew, std::string* said) {
  if (anew && fs::exists(directory)) {
    int number = 1;
    while (fs::exists(absl::StrCat(directory, ".damaged-", number))) ++number;
    const std::string aside = absl::StrCat(directory, ".damaged-", number);
    std::error_code error;
    fs::rename(directory, aside, error);
    if (error)
      return absl::UnavailableError(absl::StrCat(directory, ": can't be set aside: ", error.message()));
    *said = aside;
  }
  std::string set_aside;
  auto store = storage::open_rocks_state_store(directory, &set_aside);
  if (!set_aside.empty()) *said = set_aside;
  if (!store.ok()) return store.status();
  return std::shared_ptr<storage::StateStore>(*std::move(store));
}

int run_server(const ServerOptions& options) {
  spdlog::set_default_logger(spdlog::stderr_logger_mt("muster"));
  spdlog::set_pattern("%Y-%m-%d %H:%M:%S.%e %l %v");
  // Before any thread exists, so that only this one gets them.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);

  if (absl::Status bad = check(options); !bad.ok()) return fail(bad);
  auto driver = driver_options(options, signals);
  if (!driver.ok()) return fail(driver.status());
  std::atomic<bool> fatal{false};
  driver->on_fatal = [&](const std::string&) { fatal = true; };
  auto server = Server::start(*std::move(driver), options.listen);
  if (!server.ok()) return fail(server.status());
  bool announced = false;
  while (!fatal && !signalled(signals)) {
    if (announced || !(*server)->driver().caught_up()) continue;
    announced = true;
    std::printf("listening %s\n", (*server)->address().c_str());
    std::fflush(stdout);
    spdlog::info("serving cell {} at {}", (*server)->driver().options().engine.cell, (*server)->address());
  }
  spdlog::info("stopping");
  (*server)->stop();
  return fatal ? 1 : 0;
}

}  // namespace muster::server
