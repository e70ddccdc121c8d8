// The checkpoint of all servers of a group that is being made: one cut.
//
//   none ──CutOrdered──> ordered ──(all homes have answered for leavers)──> said ──> written
//                           └──────────────(a server is lost, an error)──────┴──> given up
//
// A checkpoint may be the last of its group: then nothing is applied after it, and a group of
// another size begins with it. No server is told to write it before all of them know that. The
// order is sent only when homes have answered for all workers that leave, because the answer is
// committed in the ledger at once, and may contain what was decided after the cut.
//
// Only its number is durable. After a restart, no checkpoint is the last: the group goes on.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "core/clock.h"
#include "core/ids.h"
#include "core/wire/servers/ps_messages.h"
#include "ctl/servers/group_events.h"

namespace antdt::ctl::servers {

class GroupCut {
 public:
  static constexpr Duration kRepeat = std::chrono::seconds(2);

  void order(std::uint64_t number) { cut_ = Cut{number, {}, {}}; }
  // The checkpoint that was ordered is the last: nothing is applied after it.
  void make_last() { last_ = cut_->number; }
  // No checkpoint is the last any more. Returns whether one was.
  bool abandon_last();
  void end_group() { last_ = 0; }
  void restore(std::uint64_t number);

  [[nodiscard]] bool is_under_way() const { return cut_.has_value(); }
  [[nodiscard]] std::uint64_t number() const { return cut_ ? cut_->number : 0; }  // 0: none
  [[nodiscard]] std::uint64_t last() const { return last_; }                      // 0: none
  [[nodiscard]] bool is_last() const { return cut_ && cut_->number == last_; }
  [[nodiscard]] bool is_said() const { return cut_ && cut_->said; }
  // Whether the order was never sent, or is to be repeated.
  [[nodiscard]] bool is_due(MonoTime now) const;

  void said(MonoTime now) { cut_->said = now; }
  [[nodiscard]] bool has_saved(Member server) const { return cut_->saved.contains(server); }
  [[nodiscard]] wire::PsCut order_in(Generation generation) const;

  // A server has written its part. The result is complete with the parts of `servers` servers.
  [[nodiscard]] std::optional<ConcludeCut> save(Member server, const wire::PsSaved& said,
                                                std::size_t servers, Generation generation);
  [[nodiscard]] ConcludeCut give_up(const std::string& why,
                                    std::optional<Member> unwritten = std::nullopt);

 private:
  struct Cut {
    std::uint64_t number = 0;
    std::map<Member, wire::PsSaved> saved;
    std::optional<MonoTime> said;  // empty: not sent yet
  };
  [[nodiscard]] ConcludeCut finish(Generation generation);

  std::optional<Cut> cut_;
  std::uint64_t last_ = 0;
};

}  // namespace antdt::ctl::servers
