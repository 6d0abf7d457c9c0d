#include "storage/log_contract.h"

#include "storage/embedded_log.h"
#include "storage/memory_log.h"
#include "storage/temporary_directory.h"

namespace muster::storage {
namespace {

class MemoryPlace : public LogPlace {
 public:
  std::unique_ptr<Log> open() override { return make_memory_log(); }
  bool survives_reopening() const override { return false; }
};

class EmbeddedPlace : public LogPlace {
 public:
  std::unique_ptr<Log> open() override {
    std::string notice;
    absl::StatusOr<std::unique_ptr<Log>> log =
        open_embedded_log(directory_.path() + "/log", LogMode::kWrite, &notice);
    EXPECT_TRUE(log.ok()) << log.status();
    EXPECT_EQ(notice, "");
    return log.ok() ? std::move(*log) : nullptr;
  }

 private:
  TemporaryDirectory directory_;
};

INSTANTIATE_TEST_SUITE_P(
    All, LogContract,
    testing::Values(LogPlaceCase{"memory", [](std::string*) { return std::make_unique<MemoryPlace>(); }},
                    LogPlaceCase{"embedded", [](std::string*) { return std::make_unique<EmbeddedPlace>(); }}),
    case_name);

}  // namespace
}  // namespace muster::storage
