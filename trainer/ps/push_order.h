// The order in which a worker says its pushes to servers, several of them under way. Pure.
//
//   made ──(the one before is staged)──> staging ──(by all servers)──> staged
//   staged ──(the one before is decided)──> committing ──(by its home)──> decided ──> taken
//
// A server that decisions reach late answers what it stages late (server.h), so one push at a time
// is staged. It is committed after the decision of the one before: its home remembers one answer,
// and the ledger wants places in their order.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <variant>

#include "core/wire/ps_messages.h"

namespace antdt::ps {

class PushOrder {
 public:
  // commit.number rises.
  void add(const wire::PsCommit& commit);
  // Every server has its part of it.
  void staged(std::uint64_t number);
  // Its home has answered the commit.
  void decided(std::uint64_t number, const wire::PsDecided& decision);

  struct Stage {  // say each server its part
    std::uint64_t number = 0;
  };
  using Say = std::variant<Stage, wire::PsCommit>;  // the commit: to its home
  // What is to be said now, each once; asked for until there is nothing.
  [[nodiscard]] std::optional<Say> next();
  // Of the first push whose decision was not taken; nothing: it is not decided yet, or there is
  // none.
  [[nodiscard]] std::optional<wire::PsDecided> take_decision();
  [[nodiscard]] bool has_decision() const {
    return !pushes_.empty() && pushes_.front().at == At::kDecided;
  }

  [[nodiscard]] bool empty() const { return pushes_.empty(); }
  [[nodiscard]] std::size_t size() const { return pushes_.size(); }
  // The newest push that a home was asked to apply: how far its places go, and in which
  // phase. Nothing beyond is applied; 0: nothing.
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
  // `number` is where `from` says, and goes on from there.
  Push& move(std::uint64_t number, At from, At to);

  std::deque<Push> pushes_;  // whose decision was not taken
  Said said_;
};

}  // namespace antdt::ps
