#include "proto/records.h"

#include <gtest/gtest.h>

#include "proto/chain.h"

namespace muster {
namespace {

v1::Record submitted() {
  v1::Record record;
  record.set_cell("c");
  record.set_type("Submitted");
  record.set_format(1);
  record.mutable_submitted()->set_key("k");
  return record;
}

TEST(Records, TypeAndKeyNameTheEntity) {
  EXPECT_EQ(record_type(submitted()), "Submitted");
  EXPECT_EQ(record_key(submitted()), "key/k");
  v1::Record exited;
  exited.mutable_exited()->mutable_member()->set_job(12);
  EXPECT_EQ(record_key(exited), "job/12");
}

TEST(Records, DecodeTellsWhatCannotBeReadFromWhatIsUnknown) {
  v1::Record out;
  EXPECT_EQ(decode_record(submitted().SerializeAsString(), "c", &out), Decoded::kOk);
  EXPECT_EQ(decode_record("\xff\xff nonsense", "c", &out), Decoded::kUndecodable);
  EXPECT_EQ(decode_record(submitted().SerializeAsString(), "another", &out), Decoded::kUndecodable);
  v1::Record newer = submitted();
  newer.set_format(kFormat + 1);
  EXPECT_EQ(decode_record(newer.SerializeAsString(), "c", &out), Decoded::kUnknown);
  v1::Record unknown_type = submitted();
  unknown_type.clear_body();
  unknown_type.set_type("from_the_future");
  EXPECT_EQ(decode_record(unknown_type.SerializeAsString(), "c", &out), Decoded::kUnknown);
}

TEST(Records, JsonIsOneObjectALine) {
  const std::string json = record_json(7, "key/\"k\"", submitted().SerializeAsString());
  EXPECT_EQ(json.find('\n'), std::string::npos);
  EXPECT_NE(json.find("\"position\":7,\"type\":\"Submitted\",\"key\":\"key/\\\"k\\\"\""), std::string::npos)
      << json;
  EXPECT_NE(record_json(8, "x", "\xff").find("\"undecodable\""), std::string::npos);
}

TEST(Chain, DependsOnEverythingBefore) {
  const Chain one = chain_next({}, 0, "k", "v");
  EXPECT_NE(one, chain_next({}, 1, "k", "v"));
  EXPECT_NE(one, chain_next({}, 0, "kv", ""));
  EXPECT_NE(chain_next(one, 1, "k", "v"), chain_next({}, 1, "k", "v"));
  EXPECT_EQ(Chain::from_bytes(one.bytes()), one);
  EXPECT_EQ(one.hex().size(), 32u);
}

}  // namespace
}  // namespace muster
