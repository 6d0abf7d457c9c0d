// The exact words of every reason: each says what stands in the way, its number, and what would remedy it.
#include "scheduler/explain.h"

#include "absl/strings/str_cat.h"
#include "scheduler/test_world.h"
#include "scheduler/words.h"

namespace muster::scheduler {
namespace {

// "CODE count: text -> remedy", a line each.
std::string said(const Explanation& explanation) {
  std::string out;
  for (const Blocker& blocker : explanation.blockers) {
    absl::StrAppend(&out, out.empty() ? "" : "\n", blocker.code, " ", blocker.count, ": ", blocker.text,
                    " -> ", blocker.remedy);
  }
  return out;
}

// Three nodes of 8 a100 in one zone.
World three() {
  World w;
  for (const char* name : {"a", "b", "c"}) {
    w.node({name, 16, 64, gpus(8, "a100"), {{"zone", "us-east-1a"}, {"rack", name[0] == 'c' ? "r2" : "r1"}}});
  }
  return w;
}

struct Case {
  const char* name;
  Ask ask;
  ReasonCode code;
  std::string said;
};

void check(World& w, const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    const Explanation got = w.explain(c.ask);
    EXPECT_EQ(said(got), c.said) << c.name;
    EXPECT_EQ(got.code, c.code) << c.name;
    EXPECT_EQ(got.never, c.code == ReasonCode::kNeverFits || c.code == ReasonCode::kNeverQueue) << c.name;
    const std::string text =
        got.blockers.empty() ? "fits now: the next round places it" : got.blockers[0].text;
    EXPECT_EQ(got.summary, got.never ? "can never run: " + text : text) << c.name;
  }
}

TEST(Explain, nothing_in_the_way) {
  World w = three();
  check(w, {{"fits", Ask(3).gpu(8), ReasonCode::kNotTried, ""}});
}

TEST(Explain, no_nodes_is_not_never) {
  World w;
  check(w, {{"none", Ask(3).gpu(8), ReasonCode::kNoCapacity,
             "NO_NODES 0: no node has joined yet -> start one with `muster agent`"}});
}

TEST(Explain, never_by_label) {
  World w = three();
  check(w,
        {{"value", Ask().require("zone", {"us-east-1b"}), ReasonCode::kNeverFits,
          "LABEL 3: no node carries label zone=us-east-1b (values there: us-east-1a) -> the nearest is "
          "zone=us-east-1a; or "
          "start an agent with --label zone=us-east-1b"},
         {"values", Ask().require("rack", {"q7", "r3"}), ReasonCode::kNeverFits,
          "LABEL 3: no node carries label rack=q7|r3 (values there: r1, r2) -> the nearest is rack=r1; or "
          "start an agent "
          "with --label rack=q7"},
         {"name", Ask().require("zones", {"x"}), ReasonCode::kNeverFits,
          "LABEL 3: no node carries label zones (labels there: rack, zone) -> the nearest is zone; or start "
          "an agent with "
          "--label zones=x"},
         {"excluded", Ask().exclude("zone", {"us-east-1a"}), ReasonCode::kNeverFits,
          "LABEL 3: `not` excludes all nodes: zone=us-east-1a -> relax `not`, or add nodes without these "
          "labels"},
         {"together", Ask().require("rack", {"r1"}).exclude("zone", {"us-east-1a"}), ReasonCode::kNeverFits,
          "LABEL 3: no node satisfies all of its labels together: rack=r1, not zone=us-east-1a -> relax one "
          "of `require` "
          "and `not`, or add a node that satisfies all"}});
  World bare;
  bare.node({"a"});
  check(bare, {{"no labels", Ask().require("zone", {"x"}), ReasonCode::kNeverFits,
                "LABEL 1: no node carries label zone (nodes carry no labels) -> start an agent with --label "
                "zone=x"}});
}

TEST(Explain, never_by_model) {
  World w = three();
  check(w, {{"model", Ask().gpu(1).model("h100"), ReasonCode::kNeverFits,
             "GPU_MODEL 3: no node has gpu_model h100 (there are: a100 ×24) -> the nearest is a100; or add "
             "nodes with "
             "h100"}});
  World plain;
  plain.node({"a"});
  check(plain, {{"no gpus", Ask().gpu(2), ReasonCode::kNeverFits,
                 "GPU_MODEL 1: each member wants 2 GPUs; no node has any -> add a node with GPUs (`muster "
                 "agent --gpu N "
                 "--gpu-model MODEL` declares them)"}});
}

TEST(Explain, never_by_size) {
  World w = three();
  check(w, {{"gpus", Ask().gpu(9), ReasonCode::kNeverFits,
             "TOO_BIG 3: each member wants 9 GPUs; the largest node has 8 -> ask for at most 8 GPUs for each "
             "member, or add a "
             "larger node"},
            {"two", Ask().cpu(17).memory_gi(65), ReasonCode::kNeverFits,
             "TOO_BIG 3: each member wants 17 CPUs; the largest node has 16 -> ask for at most 16 CPUs for "
             "each member, or add "
             "a larger node\n"
             "TOO_BIG 3: each member wants 65Gi of memory; the largest node has 64Gi -> ask for at most 64Gi "
             "of memory for "
             "each member, or add a larger node"},
            {"all", Ask(4).gpu(8).model("a100"), ReasonCode::kNeverFits,
             "TOO_BIG 3: wants 4×8 = 32 GPUs; all nodes with gpu_model a100 together have 24 -> ask for at "
             "most 3 members, or "
             "add nodes"},
            {"labelled", Ask(3).gpu(8).require("rack", {"r1"}), ReasonCode::kNeverFits,
             "TOO_BIG 3: wants 3×8 = 24 GPUs; all nodes that its labels admit together have 16 -> ask for at "
             "most 2 members, "
             "or add nodes"},
            {"pieces", Ask(7).gpu(3), ReasonCode::kNeverFits,
             "TOO_BIG 3: wants 7 members; all nodes together have room for 6 -> ask for at most 6 members, "
             "or add nodes"},
            {"per node", Ask(4).per_node(1), ReasonCode::kNeverFits,
             "PER_NODE 3: wants 4 members, at most 1 on a node; only 3 nodes could hold any, 3 in all -> "
             "raise per_node, ask "
             "for at most 3 members, or add nodes"},
            {"pack", Ask(3).gpu(8).pack("rack"), ReasonCode::kNeverFits,
             "PACK 2: wants all 3 members under one rack; the largest: r1, with room for 2 -> soften it: "
             "pack: {prefer: rack}"},
            {"no such pack", Ask(3).gpu(8).pack("row"), ReasonCode::kNeverFits,
             "PACK 0: no node carries label row, by which it is packed -> start agents with --label row=…, "
             "or drop `pack`"},
            {"tasks", Ask(1).named("learner").gpu(9).task(49, "actor"), ReasonCode::kNeverFits,
             "TOO_BIG 3: task learner: each member wants 9 GPUs; the largest node has 8 -> ask for at most 8 "
             "GPUs for each "
             "member, or add a larger node\n"
             "TOO_BIG 3: task actor: wants 49×1 = 49 CPUs; all nodes together have 48 -> ask for at most 48 "
             "members, or add "
             "nodes"},
            {"tasks together", Ask(1).cpu(10).task(10, "actor").cpu(4), ReasonCode::kNeverFits,
             "TOO_BIG 3: each of its tasks alone would fit, but not all of them together on the nodes that "
             "exist -> ask for "
             "less, or add nodes"}});
}

TEST(Explain, never_although_each_resource_is_there) {
  World w;
  w.node({"a", 64, 64, {}});
  w.node({"b", 2, 64, gpus(8, "a100")});
  check(w, {{"apart", Ask().cpu(4).gpu(1), ReasonCode::kNeverFits,
             "TOO_BIG 2: each member wants 1 GPU and 4 CPUs; no node has these together -> ask for less of "
             "one for each "
             "member, or add a larger node"}});
}

TEST(Explain, busy) {
  World w = three();
  w.add(Ask(3).gpu(5).per_node(1));
  w.add(Ask().gpu(1));
  w.run();
  check(w, {{"busy", Ask(2).gpu(8).model("a100"), ReasonCode::kNoCapacity,
             "NODES_BUSY 3: 3 of 3 nodes with gpu_model a100 are busy: 8 of 24 GPUs free, 16 wanted -> wait "
             "until running "
             "work ends, or add nodes: room for 2 members is missing"},
            {"pieces", Ask(3).gpu(2).cpu(1).per_node(1).exclude("rack", {"r1"}), ReasonCode::kNeverFits,
             "PER_NODE 3: wants 3 members, at most 1 on a node; only 1 node could hold any, 1 in all -> "
             "raise per_node, "
             "ask for at most 1 member, or add nodes"},
            {"in pieces", Ask(2).gpu(4), ReasonCode::kNoCapacity,
             "NODES_BUSY 3: 3 of 3 nodes are busy: 8 of 24 GPUs free, 8 wanted, in pieces that hold 0 of 2 "
             "members -> "
             "wait until running work ends, or add nodes: room for 2 members is missing"},
            {"cpu", Ask(3).cpu(16), ReasonCode::kNoCapacity,
             "NODES_BUSY 3: 3 of 3 nodes are busy: 44 of 48 CPUs free, 48 wanted -> wait until running work "
             "ends, or add "
             "nodes: room for 3 members is missing"},
            {"pack", Ask(3).gpu(2).pack("rack"), ReasonCode::kNoCapacity,
             "PACK 2: wants all 3 members under one rack; most free now: r1, with room for 2 -> wait, or "
             "soften it: pack: "
             "{prefer: rack}"}});
}

TEST(Explain, out_of_service) {
  World w = three();
  w.cluster.set_schedulable("a", false, true);
  w.cluster.set_schedulable("b", false);
  check(w, {{"two", Ask(2).gpu(8), ReasonCode::kNoCapacity,
             "NODES_DRAINING 1: 1 of 3 nodes that could hold a member is draining -> `muster node undrain "
             "NAME`, or add "
             "nodes\n"
             "NODES_DOWN 1: 1 of 3 nodes that could hold a member is unreachable, lost or quarantined -> "
             "`muster node "
             "ls` shows which; bring them back, or add nodes"}});
}

TEST(Explain, queues) {
  World w = three();
  w.queues.set("vision", 1, {{"gpu", 8000}}, {{"gpu", 16000}, {"gpu.a100", 12000}});
  w.add(Ask().gpu(6).queue("vision"));
  w.add(Ask().gpu(6).queue("vision").preemptible());
  w.run();
  check(w, {{"limit", Ask().gpu(8).queue("vision/x").preemptible(), ReasonCode::kQueueLimit,
             "QUEUE_LIMIT 1: queue vision has a limit of 16 GPUs: 12 in use, 8 wanted -> wait until work of "
             "the queue ends, "
             "or raise it: `muster queue set vision limit.gpu=20`"},
            {"quota", Ask().gpu(3).queue("vision"), ReasonCode::kQueueLimit,
             "QUEUE_QUOTA 1: queue vision has a quota of 8 GPUs for work that is not preemptible: 6 in use, "
             "3 wanted -> wait "
             "until work of the queue ends, submit it with preemptible: true, or raise it: `muster queue set "
             "vision "
             "quota.gpu=9`"},
            {"model", Ask().gpu(1).queue("vision").preemptible(), ReasonCode::kQueueLimit,
             "QUEUE_LIMIT 1: queue vision has a limit of 12 gpu.a100: 12 in use, 1 wanted -> wait until work "
             "of the queue "
             "ends, or raise it: `muster queue set vision limit.gpu.a100=13`"},
            {"never", Ask(3).gpu(8).queue("vision").preemptible(), ReasonCode::kNeverQueue,
             "QUEUE_LIMIT 1: queue vision has a limit of 16 GPUs: it alone wants 24 -> raise it: `muster "
             "queue set vision "
             "limit.gpu=24`\n"
             "NODES_BUSY 2: 2 of 3 nodes are busy: 12 of 24 GPUs free, 24 wanted -> wait until running work "
             "ends, or add "
             "nodes: room for 2 members is missing"},
            {"never both", Ask(4).gpu(8).queue("vision"), ReasonCode::kNeverFits,
             "TOO_BIG 3: wants 4×8 = 32 GPUs; all nodes together have 24 -> ask for at most 3 members, or "
             "add nodes\n"
             "QUEUE_LIMIT 1: queue vision has a limit of 16 GPUs: it alone wants 32 -> raise it: `muster "
             "queue set vision "
             "limit.gpu=32`"}});
}

TEST(Explain, back_off) {
  World w = three();
  w.now_ms = 1000;
  const Explanation got = w.explain(Ask(), 13'500);
  EXPECT_EQ(said(got),
            "BACK_OFF 1: waits 13 s more after its last attempt -> none needed: it is tried again by itself");
  EXPECT_EQ(got.code, ReasonCode::kBackOff);
  EXPECT_FALSE(got.never);
}

TEST(Words, amounts_as_people_write_them) {
  EXPECT_EQ(words(Kind::kCpu, 1000), "1 CPU");
  EXPECT_EQ(words(Kind::kCpu, 1500), "1500m CPU");
  EXPECT_EQ(words(Kind::kMemory, 3 * kGi / 2), "1.5Gi of memory");
  EXPECT_EQ(words(Kind::kMemory, 0), "0 of memory");
  EXPECT_EQ(words(Kind::kMemory, 1023), "1023 of memory");
  EXPECT_EQ(words(Kind::kMemory, 1024 * kGi), "1Ti of memory");
  EXPECT_EQ(number(Kind::kMemory, 2 * kGi - 1), "1.9Gi");
  EXPECT_EQ(queue_words("gpu", 1000), "1 GPU");
  EXPECT_EQ(queue_words("gpu.a100", 2500), "2500m gpu.a100");
  EXPECT_EQ(duration(999), "1 s");
  EXPECT_EQ(duration(61'000), "1 min 1 s");
  EXPECT_EQ(duration(7'200'000), "2 h");
  EXPECT_EQ(nearest("h10", {"a100", "h100", "t4"}), "h100");
}

}  // namespace
}  // namespace muster::scheduler
