// The members that this node has: from the order to prepare until the server says that their end is in the
// log. Here the fence is enforced, and every order is answered the same way however often it comes.
//
//     (unknown) ─prepare─▶ PREPARED ─start─▶ STARTING ─▶ RUNNING ─▶ ENDED ─forget─▶ (files kept in done/)
//                  ▲           └──── stop: exit-0 ────────────────────▲ │
//               WAITING: an older attempt's member runs here and is killed first
//                                                    start of the next run (on_failure: restart)
//
// What is asked again and has been done is not done again; its report is made again if none is under way,
// since a server that asks does not know. What is not known here was lost with its directory: it never
// started, as far as this node can tell, and is reported so.
//
// One thread. Reports go to the journal; the caller commits them and then calls `committed`.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "agent/cgroup.h"
#include "agent/done_files.h"
#include "agent/poller.h"
#include "agent/ports.h"
#include "agent/report_journal.h"
#include "agent/spawner.h"
#include "agent/task_dir.h"
#include "muster/v1/service.pb.h"

namespace muster::agent {

struct MembersOptions {
  std::string dir;  // the agent's
  std::string node;
  std::string address;
  CgroupTrees cgroups;
  int64_t output_bytes_max = 0;
  uint32_t port_first = 0;
  uint32_t port_last = 0;
};

class Members {
 public:
  // All of these outlive it.
  Members(MembersOptions options, Poller* poller, SpawnerClient* spawner, ReportJournal* journal,
          DoneFiles* done);

  // Takes over what an earlier agent left: living tasks, ends not yet told, prepared ones.
  void adopt();

  void prepare(const v1::PrepareOrder& order);
  void start(const v1::StartOrder& order);
  void stop(const v1::StopOrder& order);
  void forget(const v1::ForgetOrder& order);

  // The journal has been committed.
  void committed();
  // About every 50 ms while `clearing()`, else every second.
  void tick();
  bool clearing() const { return clearing_ > 0; }

  std::vector<v1::MemberRef> present() const;
  // The member's directory, here or among the done ones ("": none), and whether it may still write output.
  std::string files_of(const v1::MemberRef& member, bool* live) const;

 private:
  enum class Phase { kWaiting, kPrepared, kStarting, kRunning, kClearing, kEnded };
  using Key = std::tuple<uint64_t, uint32_t, uint32_t, int64_t>;  // job, element, rank, fence position
  struct Member {
    explicit Member(std::string path) : dir(std::move(path)) {}
    v1::MemberRef ref;
    TaskDir dir;
    Phase phase = Phase::kPrepared;
    uint32_t run = 0;          // the last one started
    v1::PrepareOrder waiting;  // what it waits to be prepared with
    std::vector<PortLease> leases;
    Fd events;  // from a supervisor of our own
    Fd pidfd;
    bool stop_asked = false;
    bool forgotten = false;
  };

  static Key key_of(const v1::MemberRef& ref);
  Member* find(const v1::MemberRef& ref);
  std::string path_of(const v1::MemberRef& ref) const;

  void adopt_one(const std::string& name);
  bool adopt_supervisor(Member* member);
  void prepare_now(const v1::PrepareOrder& order, Member* member);
  absl::StatusOr<v1::Prepared> make_prepared(const v1::PrepareOrder& order, Member* member, bool* own);
  void wake_waiting(const v1::MemberRef& after);
  void end_prepared(Member* member, const std::string& message);
  void retire(Member* member);

  void spawn(Member* member);
  void spawned(const v1::MemberRef& ref, uint32_t run, absl::StatusOr<Fd> pidfd);
  void on_events(const v1::MemberRef& ref);
  void supervisor_gone(Member* member);
  void clear_leftovers(Member* member);
  void never_started(Member* member, const std::string& message);
  void write_end(Member* member, v1::Exited exited);
  void ended(Member* member, uint32_t run);
  void signal_stop(Member* member, const StopRequest& request);
  void unwatch(Member* member);

  void report_prepared(v1::Prepared prepared);
  void report_prepare_failed(const v1::MemberRef& ref, const std::string& text, bool own);
  void report_started(const Member& member);
  void report_exited(v1::Exited exited);
  void report_unknown(const v1::MemberRef& ref, const std::string& text);
  void tell_end(Member* member);
  void tell_end_again(Member* member);

  static constexpr size_t kMembersMax = 4096;

  const MembersOptions options_;
  Poller* const poller_;
  SpawnerClient* const spawner_;
  ReportJournal* const journal_;
  DoneFiles* const done_;
  PortRange ports_;
  std::map<Key, std::unique_ptr<Member>> members_;
  std::vector<TaskDir> to_mark_told_;  // once the journal is committed
  int clearing_ = 0;
};

}  // namespace muster::agent
