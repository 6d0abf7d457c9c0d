#include "tools/spec/quantity.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <limits>

namespace muster::spec {
namespace {

using Parse = absl::StatusOr<int64_t> (*)(std::string_view);

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

TEST(Quantity, ReadsWhatPeopleWrite) {
  struct Case {
    Parse parse;
    const char* text;
    int64_t value;
  };
  const Case cases[] = {
      {parse_cpu_milli, "4", 4000},
      {parse_cpu_milli, "0.5", 500},
      {parse_cpu_milli, "50m", 50},
      {parse_cpu_milli, "1.250", 1250},
      {parse_gpu_milli, "8", 8000},
      {parse_gpu_milli, "0.5", 500},
      {parse_bytes, "0", 0},
      {parse_bytes, "1024", 1024},
      {parse_bytes, "16Gi", int64_t{16} << 30},
      {parse_bytes, "1.5Gi", int64_t{3} << 29},
      {parse_bytes, "500M", 500'000'000},
      {parse_bytes, "0.1Ki", 103},  // rounded up
      {parse_bytes, "7Ei", int64_t{7} << 60},
      {parse_duration_ms, "0", 0},
      {parse_duration_ms, "90", 90'000},
      {parse_duration_ms, "1.5", 1500},
      {parse_duration_ms, "250ms", 250},
      {parse_duration_ms, "30s", 30'000},
      {parse_duration_ms, "10m", 600'000},
      {parse_duration_ms, "1h30m", 5'400'000},
      {parse_duration_ms, "1d2h3m4s5ms", 93'784'005},
      {parse_duration_ms, "1.5h", 5'400'000},
  };
  for (const Case& c : cases) {
    const auto value = c.parse(c.text);
    ASSERT_TRUE(value.ok()) << c.text << ": " << value.status();
    EXPECT_EQ(*value, c.value) << c.text;
  }
}

TEST(Quantity, RefusesTheRest) {
  const std::string cpu = " is not a number of CPUs; write 4, 0.5 or 500m";
  const std::string gpu = " is not a number of GPUs; write 8";
  const std::string bytes =
      " is not a size; write 16Gi, 500M or a number of bytes (Ki, Mi, Gi, Ti are powers of 1024; K, M, G, T "
      "of 1000)";
  const std::string time = " is not a time; write 250ms, 30s, 10m, 1h30m, 7d or a number of seconds";
  struct Case {
    Parse parse;
    const char* text;
    std::string rule;
  };
  const Case cases[] = {
      {parse_cpu_milli, "", cpu},
      {parse_cpu_milli, "-1", cpu},
      {parse_cpu_milli, "0.5m", cpu},
      {parse_cpu_milli, "0.0001", cpu},
      {parse_cpu_milli, "4 ", cpu},
      {parse_cpu_milli, "1e3", cpu},
      {parse_cpu_milli, "9300000000000000000", cpu},
      {parse_gpu_milli, "1m", gpu},
      {parse_gpu_milli, "all", gpu},
      {parse_bytes, "16GB", bytes},
      {parse_bytes, "1.5", bytes},
      {parse_bytes, "8Ei", bytes},
      {parse_bytes, "16gi", bytes},
      {parse_duration_ms, "", time},
      {parse_duration_ms, "5x", time},
      {parse_duration_ms, "1m1h", time},
      {parse_duration_ms, "1h1h", time},
      {parse_duration_ms, "1h30", time},
      {parse_duration_ms, "-5s", time},
      {parse_duration_ms, "0.0001", time},
      {parse_duration_ms, "106751991168d", time},
  };
  for (const Case& c : cases) {
    const auto value = c.parse(c.text);
    ASSERT_FALSE(value.ok()) << c.text << " was read as " << *value;
    EXPECT_EQ(value.status().message(), "'" + std::string(c.text) + "'" + c.rule);
  }
}

TEST(Quantity, PrintsTheLargestUnitThatIsExact) {
  EXPECT_EQ(print_cpu(4000), "4");
  EXPECT_EQ(print_cpu(1500), "1500m");
  EXPECT_EQ(print_gpu(8000), "8");
  EXPECT_EQ(print_gpu(250), "0.25");
  EXPECT_EQ(print_bytes(int64_t{64} << 30), "64Gi");
  EXPECT_EQ(print_bytes(500'000'000), "500M");
  EXPECT_EQ(print_bytes(1023), "1023");
  EXPECT_EQ(print_duration(0), "0s");
  EXPECT_EQ(print_duration(5'400'000), "1h30m");
  EXPECT_EQ(print_duration(90'061'001), "1d1h1m1s1ms");
  EXPECT_EQ(short_bytes(int64_t{25} << 29), "12.5Gi");
  EXPECT_EQ(short_bytes(12), "12");
}

// What is printed reads back as the same number.
TEST(Quantity, RoundTrips) {
  const auto property = [] {
    const auto value = *rc::gen::oneOf(
        rc::gen::inRange<int64_t>(0, kMax), rc::gen::inRange<int64_t>(0, 100'000),
        rc::gen::map(rc::gen::inRange<int64_t>(0, 1 << 20), [](int64_t v) { return v * 1024 * 1024; }));
    RC_ASSERT(*parse_cpu_milli(print_cpu(value)) == value);
    RC_ASSERT(*parse_gpu_milli(print_gpu(value)) == value);
    RC_ASSERT(*parse_bytes(print_bytes(value)) == value);
    RC_ASSERT(*parse_duration_ms(print_duration(value)) == value);
  };
  EXPECT_TRUE(rc::check(property));
}

TEST(Quantity, AnyTextIsReadOrRefused) {
  const auto property = [] {
    const auto text =
        *rc::gen::container<std::string>(rc::gen::elementOf(std::string("0123456789.dhmsKMGTi-+e ")));
    for (const Parse parse : {parse_cpu_milli, parse_gpu_milli, parse_bytes, parse_duration_ms}) {
      const auto value = parse(text);
      if (value.ok()) RC_ASSERT(*value >= 0);
    }
  };
  EXPECT_TRUE(rc::check(property));
}

}  // namespace
}  // namespace muster::spec
