// Orders to read a checkpoint, held back while the checkpoint is copied to the host of the member
// that will read it. Only the newest order of each member counts. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "core/ids.h"
#include "jobd/outbox.h"

namespace antdt::jobd {

class HeldOrders {
 public:
  // Returns a number for release() if the checkpoint must be fetched. Empty if it is being fetched
  // already for an earlier order of the same member, which this one replaces.
  [[nodiscard]] std::optional<std::uint64_t> hold(Member member, const std::string& directory,
                                                  Outgoing order) {
    if (const auto held = held_.find(member);
        held != held_.end() && held->second.directory == directory) {
      held->second.order = std::move(order);
      return std::nullopt;
    }
    held_[member] = {++last_, directory, std::move(order)};
    return last_;
  }
  // The checkpoint is there. Empty if the order is not wanted any more, or another one replaced it.
  [[nodiscard]] std::optional<Outgoing> release(Member member, std::uint64_t number) {
    const auto held = held_.find(member);
    if (held == held_.end() || held->second.number != number) return std::nullopt;
    std::optional<Outgoing> order = std::move(held->second.order);
    held_.erase(held);
    return order;
  }
  void drop(Member member) { held_.erase(member); }

 private:
  struct Held {
    std::uint64_t number = 0;
    std::string directory;
    Outgoing order;
  };
  std::map<Member, Held> held_;
  std::uint64_t last_ = 0;
};

}  // namespace antdt::jobd
