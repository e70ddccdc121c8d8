// The order in which a worker sends its pushes to servers, several of them in progress. Pure.
//
//   made ──(the one before is staged)──> staging ──(by all servers)──> staged
//   staged ──(the one before is decided)──> committing ──(by its home)──> decided ──> taken
//
// A server to which decisions come late also answers staging late (server.h), so only one push at a
// time is staged. A push is committed after the decision about the one before, because its home
// remembers one answer, and the ledger needs places in their order.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <variant>

#include "core/wire/servers/ps_messages.h"

namespace antdt::ps {

class PushOrder {
 public:
  // commit.number must rise.
  void add(const wire::PsCommit& commit);
  // Every server has its part of the push.
  void staged(std::uint64_t number);
  // The home has answered the commit.
  void decided(std::uint64_t number, const wire::PsDecided& decision);

  struct Stage {  // send each server its part
    std::uint64_t number = 0;
  };
  using Say = std::variant<Stage, wire::PsCommit>;  // the commit goes to the home
  // What must be sent now, each once; call it until it returns nothing.
  [[nodiscard]] std::optional<Say> next();
  // The decision about the first push whose decision was not taken; empty: it is not decided yet,
  // or there is no such push.
  [[nodiscard]] std::optional<wire::PsDecided> take_decision();
  [[nodiscard]] bool has_decision() const {
    return !pushes_.empty() && pushes_.front().at == At::kDecided;
  }

  [[nodiscard]] bool empty() const { return pushes_.empty(); }
  [[nodiscard]] std::size_t size() const { return pushes_.size(); }
  // The newest push that a home was asked to apply: how far its places go, and in which phase.
  // Nothing beyond is applied; 0: nothing.
  struct Said {
    std::uint64_t phase = 0;
    std::uint64_t place = 0;
    bool operator==(const Said&) const = default;
  };
  [[nodiscard]] const Said& said() const { return said_; }

 private:
  enum class At : std::uint8_t { kMade, kStaging, kStaged, kCommitting, kDecided };
  struct Push {
    wire::PsCommit commit;
    At at = At::kMade;
    wire::PsDecided decision;
  };
  // Moves push `number` from state `from` to `to`; it must be in `from`.
  Push& move(std::uint64_t number, At from, At to);

  std::deque<Push> pushes_;  // pushes whose decision was not taken
  Said said_;
};

}  // namespace antdt::ps
