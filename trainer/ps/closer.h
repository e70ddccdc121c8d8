// Decides which pushes count: the home server's part of exactly-once.
//
// A push is decided once, here, for all servers that hold parts of it. Its worker
// commits it only when every part is staged, so whatever is decided "applied"
// can be applied everywhere without asking again; whatever is not decided is
// never applied. A worker that is revoked commits nothing any more: what was
// applied of it until then is final, and the rest may be handed out again.
//
// What is applied of a worker is told as places of its newest phase. That is enough, because
// a worker begins a phase only when every record of the phase before is in the model.
//
// With a barrier (ps-bsp) a decision is a step: it is made when `workers -
// backups` workers have committed a push for it, or all that have something to
// push if these are fewer; commits for a step that is closed are late. Without
// one every commit is a decision of its own.
//
// After the cut of the group's last checkpoint no push is decided (set_last_cut): commits wait.
// Then either the group ends, and the next one begins with everything that this one decided, or
// the checkpoint is given up, and the waiting commits are decided.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "core/ids.h"
#include "core/result.h"
#include "core/wire/ps_messages.h"
#include "trainer/ps/replica/node_image.h"

namespace antdt::ps {

class Closer {
 public:
  struct Answer {
    Member to;
    wire::PsDecided decided;
  };
  struct Refuse {
    Member to;
    wire::Refused refused;
  };
  using Effect = std::variant<wire::PsDecision, Answer, Refuse>;
  using Effects = std::vector<Effect>;

  // `updates`: how many were applied before, where a group goes on from a checkpoint.
  explicit Closer(bool barrier, std::uint64_t updates = 0)
      : barrier_(barrier), first_(updates), updates_(updates) {}

  // Adds workers, and sets for how many of all a step need not wait. Until the first step is
  // closed everybody is waited for; a worker added later counts from its first commit on. An
  // attempt that was revoked never comes back.
  void add_workers(const std::vector<Member>& workers, std::uint32_t backups, Effects& effects);
  // A commit is answered when it is decided; a commit that is repeated gets the same answer.
  void commit(Member member, const wire::PsCommit& commit, Effects& effects);
  // The worker has nothing to push until it commits again; no step waits for it.
  void idle(Member member, Effects& effects);
  // Refuses the member's commits from now on, and says so in a decision, so that the other
  // servers forget the member after applying what was decided of it before. Answers what is
  // applied of it; asked again, or of a member that never committed, it answers likewise.
  wire::PsPlaces revoke(Member member, Effects& effects);
  // Puts this home's marker for checkpoint `number`: what is decided by now is in it, what
  // follows is not. A cut that was marked before is not marked again (server.h).
  void cut(std::uint64_t number, const std::string& directory, Effects& effects);
  // After this cut nothing is decided any more; 0: no cut is the last.
  void set_last_cut(std::uint64_t number, Effects& effects);

  [[nodiscard]] std::uint64_t decisions() const { return decisions_; }
  // Updates decided, those before this group included.
  [[nodiscard]] std::uint64_t updates() const { return updates_; }
  // What is applied of one worker; and of all workers that this home has heard of, sorted,
  // revoked ones included.
  [[nodiscard]] wire::PsPlaces places(Member member) const;
  [[nodiscard]] std::vector<wire::PsPlaces> places() const;
  // How many commits were answered in each way; `repeated` counts those heard more than once.
  struct Counts {
    std::uint64_t applied = 0;
    std::uint64_t late = 0;
    std::uint64_t repeated = 0;
  };
  [[nodiscard]] const Counts& counts() const { return counts_; }

  [[nodiscard]] CloserImage image() const;
  // Takes over a state. This closer must have been made and not have heard anything.
  [[nodiscard]] Status restore(const CloserImage& image);

 private:
  struct Worker {
    bool idle = false;
    std::optional<wire::PsCommit> pending;
    wire::PsDecided last;  // number 0: none yet
    std::uint64_t phase = 0;
    std::vector<wire::PsRange> applied;  // in `phase`; sorted, not touching
  };

  [[nodiscard]] bool sound(const Worker& worker, const wire::PsCommit& commit) const;
  [[nodiscard]] bool is_closed() const { return last_cut_ != 0 && cut_ >= last_cut_; }
  void close_if_complete(Effects& effects);
  void decide(const std::vector<Member>& members, Effects& effects);
  void answer(Member member, Worker& worker, std::uint64_t number, std::string_view status,
              Effects& effects);

  bool barrier_;
  std::uint32_t backups_ = 0;
  std::uint64_t decisions_ = 0;
  std::uint64_t first_;    // updates before this group
  std::uint64_t updates_;  // decisions that apply something
  std::uint64_t cut_ = 0;  // the newest that was marked
  std::uint64_t last_cut_ = 0;
  std::map<Member, Worker> workers_;
  std::map<Member, wire::PsPlaces> revoked_;
  Counts counts_;
};

}  // namespace antdt::ps
