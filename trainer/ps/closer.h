// Decides which pushes count: the home server's part of exactly-once.
//
// A push is decided once, here, for all servers that hold parts of it. Its worker commits it only
// when every part is staged, so what is decided "applied" can be applied everywhere without asking
// again. What is not decided is never applied. A worker that is revoked can commit nothing any
// more: what was applied of it until then is final, and the rest may be granted again.
//
// What is applied of a worker is reported as places of its newest phase. That is enough, because a
// worker begins a phase only when every record of the previous phase is in the model.
//
// With a barrier (ps-bsp), a decision is a step. It is made when `workers - backups` workers have
// committed a push for it, or all workers that have something to push, if these are fewer. Commits
// for a step that is closed are late. Without a barrier every commit is a decision of its own.
//
// After the cut of the group's last checkpoint no push is decided (set_last_cut): commits wait.
// Then either the group ends, and the next one begins with everything that this one decided, or the
// checkpoint is given up, and the waiting commits are decided.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/ids.h"
#include "core/result.h"
#include "core/wire/envelope.h"
#include "core/wire/servers/ps_messages.h"
#include "trainer/ps/replica/node_image.h"

namespace antdt::ps {

namespace closer {

// ---- inputs WorkersAdded: workers of the group whose home this server is, and how many of all
// workers a step need not wait for. Until the first step is closed all are waited for; a worker
// that is added later counts from its first commit on. An attempt that was revoked never comes
// back.
struct WorkersAdded {
  std::vector<Member> workers;
  std::uint32_t backups = 0;
};
// A commit is answered when it is decided; a repeated one gets the same answer.
struct CommitHeard {
  Member member;
  wire::PsCommit commit;
};
// The worker has nothing to push until its next commit, so no step waits for it.
struct IdleHeard {
  Member member;
};
// The member's commits are refused from now on. A decision announces that, and the other servers
// forget the member after applying what was decided of it before. places() returns what is applied
// of it, even if it never committed.
struct WorkerRevoked {
  Member member;
};
// This home's marker for checkpoint `number`: the checkpoint contains what is decided by now, and
// nothing that follows. A cut is marked once (server.h).
struct CutMarked {
  std::uint64_t number = 0;
  std::string directory;
};
// After this cut nothing is decided; 0: no cut is the last.
struct LastCutSet {
  std::uint64_t number = 0;
};
using Input =
    std::variant<WorkersAdded, CommitHeard, IdleHeard, WorkerRevoked, CutMarked, LastCutSet>;

// ---- effects
struct Decide {
  wire::PsDecision decision;
};
struct AnswerCommit {
  Member to;
  wire::PsDecided decided;
};
struct RefuseCommit {
  Member to;
  wire::Refused refused;
};
using Effect = std::variant<Decide, AnswerCommit, RefuseCommit>;
using Effects = std::vector<Effect>;

}  // namespace closer

class Closer {
 public:
  // `updates`: how many were applied before the group, if it goes on from a checkpoint.
  explicit Closer(bool barrier, std::uint64_t updates = 0)
      : barrier_(barrier), first_(updates), updates_(updates) {}

  // Appends to `out`. There is no clock: a backup that takes the same inputs makes the same
  // decisions.
  void step(const closer::Input& input, closer::Effects& out);

  [[nodiscard]] std::uint64_t decisions() const { return decisions_; }
  // How many updates are decided, including those before this group.
  [[nodiscard]] std::uint64_t updates() const { return updates_; }
  // What is applied of one worker, also of a revoked one; and of all workers of this home, sorted.
  // A checkpoint needs no places of revoked ones, because the ledger has them before it is ordered
  // (ctl/servers/group_cut.h), and there are ever more of them.
  [[nodiscard]] wire::PsPlaces places(Member member) const;
  [[nodiscard]] std::vector<wire::PsPlaces> places() const;
  // How many commits were answered in each way; `repeated` counts commits that were received more
  // than once.
  struct Counts {
    std::uint64_t applied = 0;
    std::uint64_t late = 0;
    std::uint64_t repeated = 0;
  };
  [[nodiscard]] const Counts& counts() const { return counts_; }

  [[nodiscard]] CloserImage image() const;
  // Takes over a state. This closer must be new and have taken no input.
  [[nodiscard]] Status restore(const CloserImage& image);

 private:
  struct Worker {
    bool idle = false;
    std::optional<wire::PsCommit> pending;
    wire::PsDecided last;  // number 0: none yet
    std::uint64_t phase = 0;
    std::vector<wire::PsRange> applied;  // places in `phase`; sorted, not touching
  };

  void on(const closer::WorkersAdded& input, closer::Effects& out);
  void on(const closer::CommitHeard& input, closer::Effects& out);
  void on(const closer::IdleHeard& input, closer::Effects& out);
  void on(const closer::WorkerRevoked& input, closer::Effects& out);
  void on(const closer::CutMarked& input, closer::Effects& out);
  void on(const closer::LastCutSet& input, closer::Effects& out);
  void check_invariants() const;

  [[nodiscard]] bool sound(const Worker& worker, const wire::PsCommit& commit) const;
  [[nodiscard]] bool is_closed() const { return last_cut_ != 0 && cut_ >= last_cut_; }
  void close_if_complete(closer::Effects& out);
  void decide(const std::vector<Member>& members, closer::Effects& out);
  void answer(Member member, Worker& worker, std::uint64_t number, wire::PsFate status,
              closer::Effects& out);

  bool barrier_;
  std::uint32_t backups_ = 0;
  std::uint64_t decisions_ = 0;
  std::uint64_t first_;    // number of updates before this group
  std::uint64_t updates_;  // number of decisions that apply something
  std::uint64_t cut_ = 0;  // the newest that was marked
  std::uint64_t last_cut_ = 0;
  std::map<Member, Worker> workers_;
  std::map<Member, wire::PsPlaces> revoked_;
  Counts counts_;
};

}  // namespace antdt::ps
