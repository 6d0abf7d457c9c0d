#include "storage/open_log.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "storage/embedded_log.h"
#include "storage/kafka_log.h"
#include "storage/memory_log.h"

namespace muster::storage {
namespace {

absl::Status bad_address(const std::string& text, const std::string& why) {
  return absl::InvalidArgumentError(absl::StrCat("--log \"", text, "\": ", why,
                                                 ". It is one of embedded:DIR, kafka:BROKERS/CELL "
                                                 "(kafka:127.0.0.1:9092/lab), memory:"));
}

// What Kafka allows in a topic's name.
bool is_cell_name(const std::string& cell) {
  return !cell.empty() && cell.size() <= 200 && cell != "." && cell != ".." &&
         std::all_of(cell.begin(), cell.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
                  c == '_' || c == '-';
         });
}

}  // namespace

absl::StatusOr<LogAddress> parse_log_address(const std::string& text) {
  LogAddress out;
  out.cell = "local";
  const size_t colon = text.find(':');
  const std::string kind = text.substr(0, colon);
  const std::string rest = colon == std::string::npos ? "" : text.substr(colon + 1);
  if (colon == std::string::npos) return bad_address(text, "there is no \":\"");
  if (kind == "memory") {
    if (!rest.empty()) return bad_address(text, "nothing may follow \"memory:\"");
    return out;
  }
  if (kind == "embedded") {
    if (rest.empty()) return bad_address(text, "the directory is missing");
    out.kind = LogAddress::Kind::kEmbedded;
    out.directory = rest;
    return out;
  }
  if (kind != "kafka") return bad_address(text, absl::StrCat("\"", kind, "\" is no kind of log"));
  out.kind = LogAddress::Kind::kKafka;
  const size_t slash = rest.rfind('/');
  if (slash == std::string::npos) return bad_address(text, "the cell is missing");
  out.brokers = rest.substr(0, slash);
  out.cell = rest.substr(slash + 1);
  if (out.brokers.empty()) return bad_address(text, "the brokers are missing");
  if (!is_cell_name(out.cell)) {
    return bad_address(text, absl::StrCat("cell \"", out.cell, "\" must be 1 to 200 of a-z A-Z 0-9 . _ -"));
  }
  return out;
}

absl::StatusOr<std::unique_ptr<Log>> open_log(const LogAddress& address, LogMode mode, std::string* notice) {
  std::string unasked;
  switch (address.kind) {
    case LogAddress::Kind::kEmbedded:
      return open_embedded_log(address.directory, mode, notice != nullptr ? notice : &unasked);
    case LogAddress::Kind::kKafka:
      return open_kafka_log(address.brokers, address.cell, mode);
    case LogAddress::Kind::kMemory:
      break;
  }
  return make_memory_log();
}

}  // namespace muster::storage
