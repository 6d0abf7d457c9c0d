// The contract of StateStore, on the store in memory and on RocksDB.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "absl/strings/str_cat.h"
#include "storage/state_store.h"
#include "storage/temporary_directory.h"

namespace muster::storage {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using Open = std::function<std::unique_ptr<StateStore>(const std::string& directory)>;

std::unique_ptr<StateStore> open_rocks(const std::string& directory) {
  std::string set_aside;
  auto store = open_rocks_state_store(directory, &set_aside);
  EXPECT_TRUE(store.ok()) << store.status();
  EXPECT_EQ(set_aside, "");
  return store.ok() ? std::move(*store) : nullptr;
}

class StateStoreContract : public testing::TestWithParam<std::pair<const char*, Open>> {
 protected:
  void SetUp() override { store_ = GetParam().second(directory_.path() + "/state"); }

  std::vector<std::string> keys(Table table, std::string_view from, bool backwards, size_t max = 100) {
    std::vector<std::string> out;
    EXPECT_TRUE(store_
                    ->scan(table, from, backwards,
                           [&](std::string_view key, std::string_view) {
                             out.emplace_back(key);
                             return out.size() < max;
                           })
                    .ok());
    return out;
  }
  std::optional<std::string> get(Table table, std::string_view key) {
    auto value = store_->get(table, key);
    EXPECT_TRUE(value.ok()) << value.status();
    return value.ok() ? *value : std::nullopt;
  }

  TemporaryDirectory directory_;
  std::unique_ptr<StateStore> store_;
};

TEST_P(StateStoreContract, GivesBackWhatWasPutAndNothingElse) {
  EXPECT_EQ(get(Table::kLive, "a"), std::nullopt);
  ASSERT_TRUE(store_->apply({{Table::kLive, "a", "1"}, {Table::kEnded, "a", ""}}).ok());
  EXPECT_EQ(get(Table::kLive, "a"), "1");
  EXPECT_EQ(get(Table::kEnded, "a"), "");
  EXPECT_EQ(get(Table::kSpecs, "a"), std::nullopt);
}

TEST_P(StateStoreContract, LaterWritesOfABatchWin) {
  ASSERT_TRUE(store_
                  ->apply({{Table::kNodes, "a", "1"},
                           {Table::kNodes, "a", std::nullopt},
                           {Table::kNodes, "b", "1"},
                           {Table::kNodes, "b", "2"},
                           {Table::kNodes, "absent", std::nullopt}})
                  .ok());
  EXPECT_EQ(get(Table::kNodes, "a"), std::nullopt);
  EXPECT_EQ(get(Table::kNodes, "b"), "2");
}

TEST_P(StateStoreContract, ScansInKeyOrderBothWays) {
  const std::string low("\x01\x00", 2), high("\xff\x10", 2);
  ASSERT_TRUE(store_
                  ->apply({{Table::kEvents, "b", ""},
                           {Table::kEvents, high, ""},
                           {Table::kEvents, low, ""},
                           {Table::kEvents, "a", ""},
                           {Table::kDigests, "z", ""}})
                  .ok());
  EXPECT_THAT(keys(Table::kEvents, "", false), ElementsAre(low, "a", "b", high));
  EXPECT_THAT(keys(Table::kEvents, "a", false), ElementsAre("a", "b", high));
  EXPECT_THAT(keys(Table::kEvents, "aa", false, 1), ElementsAre("b"));
  EXPECT_THAT(keys(Table::kEvents, "", true), ElementsAre(high, "b", "a", low));
  EXPECT_THAT(keys(Table::kEvents, "b", true), ElementsAre("b", "a", low));
  EXPECT_THAT(keys(Table::kEvents, "az", true, 1), ElementsAre("a"));
  EXPECT_TRUE(keys(Table::kNames, "", true).empty());
}

TEST_P(StateStoreContract, ScanMayReadTheStore) {
  ASSERT_TRUE(store_->apply({{Table::kLive, "a", "1"}, {Table::kLive, "b", "2"}}).ok());
  std::vector<std::string> seen;
  ASSERT_TRUE(store_
                  ->scan(Table::kLive, "", false,
                         [&](std::string_view key, std::string_view) {
                           seen.push_back(*get(Table::kLive, key));
                           return true;
                         })
                  .ok());
  EXPECT_THAT(seen, ElementsAre("1", "2"));
}

TEST_P(StateStoreContract, EveryTableIsItsOwn) {
  for (int t = 0; t < kTableCount; ++t) {
    ASSERT_TRUE(store_->apply({{static_cast<Table>(t), "k", absl::StrCat(t)}}).ok());
  }
  for (int t = 0; t < kTableCount; ++t) EXPECT_EQ(get(static_cast<Table>(t), "k"), absl::StrCat(t));
}

TEST_P(StateStoreContract, ClearDeletesEverything) {
  const std::string high(40, '\xff');
  ASSERT_TRUE(
      store_->apply({{Table::kMeta, "meta", "1"}, {Table::kLive, "", "1"}, {Table::kLive, high, "1"}}).ok());
  ASSERT_TRUE(store_->clear().ok());
  for (int t = 0; t < kTableCount; ++t) EXPECT_TRUE(keys(static_cast<Table>(t), "", false).empty());
  ASSERT_TRUE(store_->apply({{Table::kLive, high, "2"}}).ok());
  EXPECT_EQ(get(Table::kLive, high), "2");
}

INSTANTIATE_TEST_SUITE_P(All, StateStoreContract,
                         testing::Values(std::pair<const char*, Open>{"memory",
                                                                      [](const std::string&) {
                                                                        return make_memory_state_store();
                                                                      }},
                                         std::pair<const char*, Open>{"rocks", open_rocks}),
                         [](const auto& info) { return std::string(info.param.first); });

class RocksStateStore : public testing::Test {
 protected:
  TemporaryDirectory directory_;
  const std::string path_ = directory_.path() + "/state";
};

TEST_F(RocksStateStore, SurvivesReopening) {
  ASSERT_TRUE(open_rocks(path_)->apply({{Table::kMeta, "meta", "1"}}).ok());
  EXPECT_EQ(**open_rocks(path_)->get(Table::kMeta, "meta"), "1");
}

TEST_F(RocksStateStore, SecondServerIsRefused) {
  std::unique_ptr<StateStore> store = open_rocks(path_);
  std::string set_aside;
  const absl::Status status = open_rocks_state_store(path_, &set_aside).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              testing::HasSubstr("state store " + path_ + " is in use by another server"));
  EXPECT_EQ(set_aside, "");
}

// Breaks a store that holds something, and expects it set aside whole and a new one in its place.
void expect_set_aside(const std::string& path, const std::function<void()>& damage, int n) {
  {
    std::unique_ptr<StateStore> store = open_rocks(path);
    ASSERT_TRUE(store->apply({{Table::kMeta, "meta", "1"}}).ok());
  }
  damage();
  std::string set_aside;
  auto store = open_rocks_state_store(path, &set_aside);
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_EQ(set_aside, absl::StrCat(path, ".damaged-", n));
  EXPECT_TRUE(fs::exists(set_aside + "/IDENTITY"));
  EXPECT_EQ(*(*store)->get(Table::kMeta, "meta"), std::nullopt);
}

TEST_F(RocksStateStore, DamageIsSetAsideAndSaid) {
  auto file_like = [&](const std::string& part) {
    for (const auto& file : fs::directory_iterator(path_)) {
      if (file.path().filename().string().find(part) != std::string::npos) return file.path();
    }
    return fs::path();
  };
  expect_set_aside(
      path_, [&] { std::ofstream(path_ + "/CURRENT") << "nonsense"; }, 1);
  expect_set_aside(
      path_, [&] { fs::remove(file_like("MANIFEST")); }, 2);
  expect_set_aside(
      path_, [&] { std::ofstream(file_like("MANIFEST"), std::ios::trunc) << std::string(500, 'x'); }, 3);
}

}  // namespace
}  // namespace muster::storage
