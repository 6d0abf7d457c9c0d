// What verbs print: tables, times, jobs as JSON, records in words, logs with ranks.
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>
#include <sstream>

#include "tools/cli/follow.h"
#include "tools/cli/job_view.h"
#include "tools/cli/record_text.h"
#include "tools/cli/text.h"

namespace muster::tools {
namespace {

using google::protobuf::TextFormat;

constexpr int64_t kNow = 1'700'000'000'000;  // 2023-11-14 22:13:20 UTC

v1::JobView view_of(const std::string& text) {
  v1::JobView view;
  EXPECT_TRUE(TextFormat::ParseFromString(text, &view));
  return view;
}

TEST(Text, TablesAlign) {
  Table table({">ID", "NAME", "WHY"});
  table.add({"1", "a", "x"});
  table.add({"100", "longer…", ""});
  std::ostringstream out;
  table.print(out, " ");
  EXPECT_EQ(out.str(), "  ID  NAME     WHY\n   1  a        x\n 100  longer…\n");
}

TEST(Text, TimesAreClockAndDistance) {
  setenv("TZ", "UTC", 1);
  tzset();
  EXPECT_EQ(when_text(kNow - 200'000, kNow), "22:10:00 (3m20s ago)");
  EXPECT_EQ(when_text(kNow + 3'600'000, kNow), "23:13:20 (in 1h)");
  EXPECT_EQ(when_text(kNow - 26 * 3'600'000, kNow), "2023-11-13 20:13:20 (1d02h ago)");
  EXPECT_EQ(when_text(kNow - 10, kNow), "22:13:19 (now)");
  EXPECT_EQ(when_text(0, kNow), "-");
  EXPECT_EQ(span_text(3'900'000), "1h05m");
  EXPECT_EQ(span_text(12'345), "12s");
}

TEST(Text, OneLineHasNoControlCharacters) {
  EXPECT_EQ(one_line("a\nb\x1b[31m"), "a b [31m");
  EXPECT_EQ(one_line("äöü", 2), "äö…");
}

TEST(JobView, IsThisJson) {
  const v1::JobView view = view_of(R"(
    state {
      id: 12 name: "digits" queue: "default" user: "ana" phase: FAILED reason: EXIT job_exit: 3 message: "rank 1 exited 3"
      past { number: 1 fence { position: 40 } end: END_NODE_LOST reason: NODE_LOST
             members { node: "a1" phase: MEMBER_LOST started: true reason: NODE_LOST } }
      attempt { number: 2 fence { position: 57 } end: END_FAILED reason: EXIT
                members { node: "a1" phase: MEMBER_EXITED started: true exit_code: 0 reason: EXIT }
                members { node: "a2" devices: 3 phase: MEMBER_EXITED started: true exit_code: 3 reason: EXIT } }
    }
    spec { tasks { name: "main" replicas: 2 } })");
  EXPECT_EQ(
      line_of(job_json(view)),
      R"({"schema":1,"id":12,"name":"digits","queue":"default","user":"ana","state":"FAILED","reason":"EXIT",)"
      R"("job_exit":3,"message":"rank 1 exited 3","attempts":[{"attempt":1,"position":40,"end":"NODE_LOST",)"
      R"("reason":"NODE_LOST","members":[{"task":"main","rank":0,"node":"a1","exit":null,"state":"LOST",)"
      R"("reason":"NODE_LOST"}]},{"attempt":2,"position":57,"end":"FAILED","reason":"EXIT","members":[{"task":"main",)"
      R"("rank":0,"node":"a1","exit":0,"state":"EXITED","reason":"EXIT"},{"task":"main","rank":1,"node":"a2","exit":3,)"
      R"("state":"EXITED","reason":"EXIT","devices":[3]}]}]})");
  EXPECT_EQ(why_words(view.state(), ""), "EXIT 3: rank 1 exited 3");
}

TEST(JobView, ExitCodes) {
  EXPECT_EQ(exit_code_of(view_of("state { phase: SUCCEEDED }")), 0);
  EXPECT_EQ(exit_code_of(view_of("state { phase: FAILED job_exit: 3 }")), 3);
  EXPECT_EQ(exit_code_of(view_of("state { phase: FAILED }")), 100);
  EXPECT_EQ(exit_code_of(view_of("state { phase: FAILED job_exit: -1 }")), 100);
  EXPECT_EQ(exit_code_of(view_of("state { phase: CANCELLED job_exit: 3 }")), 103);
  EXPECT_EQ(exit_code_of(view_of("state { phase: RUNNING }")), 101);
}

TEST(JobView, WhyAJobWaits) {
  EXPECT_EQ(why_words(view_of("state { phase: PENDING held: true }").state(), "x"), "held");
  EXPECT_EQ(why_words(view_of("state { phase: PENDING }").state(), "wants 8 GPUs"), "wants 8 GPUs");
  EXPECT_EQ(
      why_words(
          view_of("state { phase: PENDING array { pending { first: 3 last: 9 } live: 1 succeeded: 2 } }")
              .state(),
          ""),
      "2 succeeded, 1 placed, 7 waiting");
}

std::string words_of(const std::string& body) {
  v1::Record record;
  EXPECT_TRUE(TextFormat::ParseFromString("cell: \"c\" format: 1 " + body, &record));
  return record_text(record.SerializeAsString()).words;
}

TEST(RecordText, SaysWhatHappened) {
  EXPECT_EQ(words_of(R"(type: "Placed" placed { job: 12 attempt: 1 places { node: "a1" } places { node: "a2" }
                        places { node: "a1" } })"),
            "placed job 12 attempt 1 on a1 ×2, a2");
  EXPECT_EQ(
      words_of(
          R"(type: "Submitted" submitted { spec { name: "x" user: "u" queue: "q" tasks { replicas: 4 } } })"),
      "submitted 'x' by u to queue q: 4 members");
  const std::string member = "member { job: 12 element: 4 attempt: 2 rank: 1 }";
  const std::string who = "job 12[3] rank 1 of attempt 2";
  EXPECT_EQ(words_of("type: 'Started' started { report { node: 'a1' } " + member + " }"),
            who + " started on a1");
  EXPECT_EQ(words_of("type: 'Exited' exited { code: 3 " + member + " }"), who + " exited 3");
  EXPECT_EQ(words_of("type: 'Exited' exited { signal: 9 " + member + " }"), who + " was ended by signal 9");
  EXPECT_EQ(words_of("type: 'Exited' exited { out_of_memory: true signal: 9 " + member + " }"),
            who + " was killed: out of memory");
  EXPECT_EQ(words_of("type: 'Updated' updated { job: 3 priority: 5 time_limit_ms: 90000 }"),
            "updated job 3: priority=5, time_limit=1m30s");
  EXPECT_EQ(record_text("\xff\xff").type, "undecodable");
}

v1::LogChunk chunk(uint32_t rank, int64_t offset, const std::string& data) {
  v1::LogChunk out;
  out.set_rank(rank);
  out.set_offset(offset);
  out.set_data(data);
  return out;
}

TEST(LogPrinter, PutsTheRankBeforeEachLine) {
  std::ostringstream out;
  LogPrinter printer(out, true, false);
  printer.add(chunk(0, 0, "a\nb"));
  printer.add(chunk(1, 0, "x\n"));
  printer.add(chunk(0, 3, "c\nd"));
  printer.finish();
  EXPECT_EQ(out.str(), "[0] a\n[1] x\n[0] bc\n[0] d\n");
}

TEST(LogPrinter, PrintsNothingTwice) {
  std::ostringstream out;
  LogPrinter printer(out, false, false);
  printer.add(chunk(0, 0, "hello "));
  printer.add(chunk(0, 0, "hello world"));  // the stream was opened again
  printer.add(chunk(0, 3, "lo"));
  EXPECT_EQ(out.str(), "hello world");
}

}  // namespace
}  // namespace muster::tools
