#include "tools/cli/names.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace muster::tools {
namespace {

// "id=12 element=4 rank=0 task=actor.0 attempt=2", with what is there.
std::string text_of(const JobName& name) {
  std::string out =
      name.job.id() > 0 ? absl::StrCat("id=", name.job.id()) : absl::StrCat("name=", name.job.name());
  if (name.job.element() > 0) absl::StrAppend(&out, " element=", name.job.element());
  if (name.rank.has_value()) absl::StrAppend(&out, " rank=", *name.rank);
  if (!name.task.empty()) absl::StrAppend(&out, " task=", name.task, ".", name.task_index);
  if (name.attempt > 0) absl::StrAppend(&out, " attempt=", name.attempt);
  return out;
}

TEST(Names, HaveTheseForms) {
  const std::pair<const char*, const char*> cases[] = {
      {"12", "id=12"},
      {"12[3]", "id=12 element=4"},
      {"12.0", "id=12 rank=0"},
      {"12.actor.0", "id=12 task=actor.0"},
      {"12.my.task.7", "id=12 task=my.task.7"},
      {"12@2", "id=12 attempt=2"},
      {"12[3].actor.1@2", "id=12 element=4 task=actor.1 attempt=2"},
      {"resnet.v2", "name=resnet.v2"},
      {"resnet.v2[0]@1", "name=resnet.v2 element=1 attempt=1"},
      {"12abc", "name=12abc"},
  };
  for (const auto& [text, expected] : cases) {
    const auto name = parse_job_name(text);
    ASSERT_TRUE(name.ok()) << text << ": " << name.status();
    EXPECT_EQ(text_of(*name), expected) << text;
  }
}

TEST(Names, RefuseTheRest) {
  for (const char* text : {"", "0", "12[", "12[x]", "12[3", "[3]", "12@", "12@0", "12@x", "12.", "12.actor",
                           "12.actor.x", "12[3]4", "99999999999999999999", "name[1]x"}) {
    const auto name = parse_job_name(text);
    ASSERT_FALSE(name.ok()) << text << " was read as " << text_of(*name);
    EXPECT_EQ(name.status().message(),
              absl::StrCat(
                  "'", text,
                  "' names no job; write 12, 12[3] (an element), 12.actor.0 (a member), 12@2 (an attempt) or "
                  "the job's name"));
  }
  EXPECT_EQ(parse_job_ref("12@2").status().message(),
            "'12@2' is not a whole job; write 12, 12[3] (an element) or the job's name");
}

TEST(Names, MembersAreFoundInTheTasks) {
  v1::JobSpec spec;
  spec.add_tasks()->set_name("learner");
  spec.mutable_tasks(0)->set_replicas(2);
  spec.add_tasks()->set_name("actor");
  spec.mutable_tasks(1)->set_replicas(3);
  EXPECT_EQ(*rank_of(*parse_job_name("12.actor.2"), spec), 4U);
  EXPECT_EQ(*rank_of(*parse_job_name("12.1"), spec), 1U);
  EXPECT_EQ(rank_of(*parse_job_name("12.actor.3"), spec).status().message(),
            "task 'actor' has no member 3; its members are 0 to 2");
  EXPECT_EQ(rank_of(*parse_job_name("12.critic.0"), spec).status().message(),
            "the job has no task 'critic'; its tasks are learner, actor");
  EXPECT_EQ(task_of_rank(spec, 4).task, "actor");
  EXPECT_EQ(task_of_rank(spec, 4).index, 2U);
  EXPECT_EQ(task_of_rank(spec, 5).task, "");
}

}  // namespace
}  // namespace muster::tools
