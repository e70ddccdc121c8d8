// The parameter servers of a job and the workers that push to them: one group at a time, each with
// a generation.
//
//   kGathering ──all have joined──> kForming ──all servers serve it──> kServing
//       ^                              │                                  │
//       └──── the group is over ───────┴──────────────────────────────────┘
//
// A group is over when it loses a server without a backup, when its number of servers changes, or
// when a server cannot read its slices (row_source.h says how often that is tried).
// Workers come and go while the group serves, and the others do not notice (group_workers.h). A new
// worker is named to every server before it is told where the servers are (AdmitWorker). A lost
// worker is named as leaving, and its home answers which of its places are applied (SettleLeaver).
// Only then may the rest be granted again and its successor be admitted.
//
// Each subject has a class of its own, and this class coordinates them:
//
//   roll.h           which processes are expected and have joined, and their keys
//   placement.h      which process is which server: primaries, backups, those that join
//   group_workers.h  the workers: named, admitted, leaving
//   briefing.h       which server has heard which order
//   group_cut.h      the checkpoint that is being made, and the last one before a change of number
//   row_source.h     where the rows of the next group come from
//   patience.h       which processes were waited for too long
//
// The number of servers changes at a checkpoint that is the last of its group (CutOrdered::last),
// so that nothing has to be trained again. Servers of the next size join before that, beside the
// group (ProcessesExpected::added). The caller that ordered the checkpoint sends GroupResized when
// it is stored, or ResizeAbandoned when it is given up.
//
// A value without I/O. image() is durable: the job daemon owns the group and journals the image
// when PersistGroup is among the effects, before anything that follows is sent. The image has the
// state, generation, servers, placement, workers, leavers, keys, source of the rows, number of the
// newest order and checkpoint. After a restart, the servers are asked again what they have heard.
// docs/parameter-servers.md explains why a record enters the model once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/ids.h"
#include "core/wire/servers/ps_messages.h"
#include "ctl/servers/briefing.h"
#include "ctl/servers/group_cut.h"
#include "ctl/servers/group_events.h"
#include "ctl/servers/group_image.h"
#include "ctl/servers/group_workers.h"
#include "ctl/servers/patience.h"
#include "ctl/servers/placement.h"
#include "ctl/servers/roll.h"
#include "ctl/servers/row_source.h"

namespace antdt::ctl::servers {

struct ServerGroupConfig {
  std::uint32_t servers = 0;  // 0: the job has none
  SyncStrategy sync = SyncStrategy::kPsBsp;
  std::uint32_t backups = 0;  // how many pushes a step need not wait for
  Duration hang_after = std::chrono::seconds(120);
  std::uint32_t replicas = 1;  // how many processes form one server: 1 or 2
  bool keeps_rows = false;     // when a server is lost, the others keep their rows
  Duration host_lost_after{};  // a host that is silent for less may come back
};

class ServerGroup {
 public:
  enum class State : std::uint8_t { kGathering, kForming, kServing };

  explicit ServerGroup(ServerGroupConfig config = {});

  // Appends to `out`.
  void step(const Input& input, MonoTime now, Effects& out);

  [[nodiscard]] ServerGroupImage image() const;
  // `at_least`: generations up to this one have been used.
  void restore(const ServerGroupImage& image, Generation at_least);

  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] bool serving() const { return state_ == State::kServing; }
  [[nodiscard]] Generation generation() const { return generation_; }
  // Whether nothing is applied after the checkpoint that is being made.
  // The checkpoint that is being made; 0: none.
  [[nodiscard]] std::uint64_t cut() const { return cut_.number(); }
  [[nodiscard]] bool closing() const { return cut_.last() != 0; }
  [[nodiscard]] const GroupWorkers& workers() const { return workers_; }
  [[nodiscard]] const Placement& placement() const { return placement_; }
  // Where the servers and their backups are, with their keys.
  [[nodiscard]] wire::PsRoster roster() const;
  // While a group gathers: the servers that begin it with the rows that they have.
  [[nodiscard]] std::vector<Member> keepers() const;
  [[nodiscard]] std::uint32_t backups() const { return backups_.value_or(config_.backups); }
  // How many servers the model needs at least, as its workers say; 0: unknown.
  [[nodiscard]] std::uint32_t fewest() const { return fewest_; }
  // For people: which processes are waited for, and for what; empty: none.
  [[nodiscard]] std::string waiting_for() const;
  [[nodiscard]] std::vector<Member> missing() const;
  // Whether it is one of those that are to join first.
  [[nodiscard]] bool awaits(Member member) const;

 private:
  void on(const ProcessesExpected& e, Effects& out);
  void on(const GroupJoinRequested& e, Effects& out);
  void on(const ServeAnswered& e, Effects& out);
  void on(const SlicesSaved& e, Effects& out);
  void on(const GroupMemberLost& e, Effects& out);
  void on(const RestoreChosen& e, Effects& out);
  void on(const RowsVoid& e, Effects& out);
  void on(const CutOrdered& e, Effects& out);
  void on(const GroupResized& e, Effects& out);
  void on(const ResizeAbandoned& e, Effects& out);
  void on(const TermsSet& e, Effects& out);
  void on(const RestoreAdvanced& e, Effects& out);
  void on(const TimePassed& e, Effects& out);

  void server_joined(const GroupJoinRequested& e, Effects& out);
  void slices_unread(const GroupJoinRequested& e, Effects& out);
  void form_if_complete(Effects& out);
  void serve_or_admit(Effects& out);
  void lose_server(const GroupMemberLost& e, Effects& out);
  void dissolve(const std::string& reason, Effects& out);
  void let_join(Effects& out);

  void tell_servers(Effects& out);
  void say(const GroupServer& server, Effects& out);
  void repeat_orders(Effects& out);
  void say_cut(Effects& out);
  void give_up_cut(const std::string& why, Effects& out);
  void say_rosters(Effects& out);
  void check_invariants() const;

  ServerGroupConfig config_;
  State state_ = State::kGathering;
  Generation generation_;
  Roll roll_;
  Placement placement_;
  GroupWorkers workers_;
  Briefing briefing_;
  GroupCut cut_;
  RowSource rows_;
  ChooseRestore question_;  // that is asked next: why the servers could not read rows_.restore()
  Patience patience_;
  std::optional<std::uint32_t> backups_;
  std::uint32_t fewest_ = 0;
  double rate_ = 1;
  MonoTime released_{};  // when workers were last told that the group is over
  // when workers were last told the roster since a backup was last counted
  std::optional<MonoTime> rosters_said_;
  MonoTime now_{};  // of the present step
};

}  // namespace antdt::ctl::servers
