#include "tools/bench/place.h"

#include <cstdlib>
#include <filesystem>
#include <random>

#include "absl/strings/str_cat.h"
#include "tools/bench/measure.h"
#include "tools/bench/raw_kafka.h"

namespace muster::bench {
namespace {

namespace fs = std::filesystem;
using storage::LogAddress;

constexpr int kStartMs = 300'000;
constexpr double kPatienceS = 300;

std::string random_name() {
  std::random_device device;
  return absl::StrCat("bench-", absl::Hex(device(), absl::kZeroPad8));
}

absl::StatusOr<std::string> temporary_directory() {
  std::error_code error;
  const fs::path parent = fs::temp_directory_path(error);
  std::string name = (error ? fs::path("/var/tmp") : parent) / "muster-bench-XXXXXX";
  if (mkdtemp(name.data()) == nullptr)
    return absl::UnavailableError(absl::StrCat("cannot make a directory like ", name, "; set TMPDIR to one"));
  return name;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Place>> Place::make(const std::string& log) {
  std::unique_ptr<Place> out(new Place);
  auto directory = temporary_directory();
  if (!directory.ok()) return directory.status();
  out->directory_ = *std::move(directory);
  if (log == "embedded" || log == "embedded:") {
    auto address = storage::parse_log_address(absl::StrCat("embedded:", out->directory_, "/log"));
    out->log_ = *std::move(address);
    return out;
  }
  auto address = storage::parse_log_address(log);
  if (!address.ok()) return address.status();
  out->log_ = *std::move(address);
  if (out->log_.kind == LogAddress::Kind::kKafka) absl::StrAppend(&out->log_.cell, "-", random_name());
  if (out->log_.kind == LogAddress::Kind::kEmbedded) {
    out->log_parent_ = absl::StrCat(out->log_.directory, "/", random_name());
    std::error_code error;
    fs::create_directories(out->log_parent_, error);
    if (error)
      return absl::UnavailableError(
          absl::StrCat("--log: cannot make ", out->log_parent_, ": ", error.message()));
    out->log_.directory = out->log_parent_ + "/log";
  }
  return out;
}

Place::~Place() {
  std::error_code ignored;
  fs::remove_all(directory_, ignored);
  if (!log_parent_.empty()) fs::remove_all(log_parent_, ignored);
  if (log_.kind == LogAddress::Kind::kKafka) delete_topics(log_.brokers, {log_.cell, raw_topic()});
}

std::string Place::log_text() const {
  switch (log_.kind) {
    case LogAddress::Kind::kEmbedded:
      return "embedded:" + log_.directory;
    case LogAddress::Kind::kKafka:
      return absl::StrCat("kafka:", log_.brokers, "/", log_.cell);
    case LogAddress::Kind::kMemory:
      break;
  }
  return "memory:";
}

absl::StatusOr<std::unique_ptr<BenchServer>> BenchServer::start(const Place& place) {
  std::unique_ptr<BenchServer> out(new BenchServer);
  auto process = Child::start({"server", "--log", place.log_text(), "--dir", place.directory() + "/server",
                               "--listen", "127.0.0.1:0"},
                              place.directory() + "/server.err");
  if (!process.ok()) return process.status();
  out->process_ = *std::move(process);
  auto address = out->process_->line("listening ", kStartMs);
  if (!address.ok()) return address.status();
  out->client_ = std::make_unique<tools::Client>(*address);
  return out;
}

absl::StatusOr<v1::ServerStatus> BenchServer::status() {
  v1::ServerStatus out;
  if (absl::Status bad = client_->call(&v1::Muster::Stub::GetStatus, {}, &out); !bad.ok()) return bad;
  if (!out.trouble().empty())
    return absl::InternalError(absl::StrCat("the server has a trouble: ", out.trouble()));
  return out;
}

absl::Status BenchServer::lead() {
  const StopWatch watch;
  while (watch.seconds() < kPatienceS) {
    auto now = status();
    if (!now.ok()) return now.status();
    if (now->leader()) return absl::OkStatus();
    tools::sleep_ms(10);
  }
  return absl::DeadlineExceededError(
      absl::StrCat("the server did not lead its cell within ", kPatienceS, " s"));
}

absl::Status BenchServer::until_ended(uint64_t jobs) {
  StopWatch watch;
  while (watch.seconds() < kPatienceS) {
    auto now = status();
    if (!now.ok()) return now.status();
    if (now->ended_jobs() >= jobs) return absl::OkStatus();
    tools::sleep_ms(10);
  }
  return absl::DeadlineExceededError(
      absl::StrCat("not all of ", jobs, " jobs ended within ", kPatienceS, " s"));
}

}  // namespace muster::bench
