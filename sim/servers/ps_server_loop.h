// What a parameter server is to one group: the real machine (trainer/ps/server_node.h),
// and around it what trainer/ps_link/server_loop.h does.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/model.h"
#include "sim/servers/ps_packets.h"
#include "sim/world.h"
#include "trainer/ps/replica/replica.h"

namespace antdt::sim {

struct PsGroup {
  Generation generation;
  ps::Consistency consistency = ps::Consistency::kBarrier;
  std::vector<std::string> endpoints;
  std::vector<Member> workers;
  std::uint32_t backups = 0;
  std::string restore;
  std::uint64_t version = 0;
  ps::replica::Role role = ps::replica::Role::kAlone;
  std::uint64_t view = 0;
  std::string backup;  // of a primary: its end point
};

class PsServerLoop {
 public:
  // The process that it is in.
  struct Outside {
    std::function<void(Duration, World::Action)> later;
    std::function<void(const std::string& endpoint, PsPacket)> ask;
    std::function<void(PsAnswer)> answer;
    // What went wrong, or "".
    std::function<std::string(const std::string& directory, const PsSlices&)> write;
    // Null: they cannot be read.
    std::function<const PsSlices*(const std::string& directory)> read;
    std::function<void(std::uint32_t home, const wire::PsDecision&)> decided;
    std::function<std::uint64_t()> new_socket;
    std::function<Duration()> time_to_write;
    std::function<void(const std::string&)> broken;  // it cannot be a backup
    std::function<Duration()> time_to_make_piece;
    std::function<bool()> loses_child;  // the one that makes them
  };
  PsServerLoop(Outside outside, const PsGroup& group, std::uint32_t index);

  using Serving = std::function<void(const wire::PsServing&)>;
  void serve(const wire::PsServe& now, Serving done);
  using Saved = std::function<void(const wire::PsSaved&)>;
  void cut(const wire::PsCut& order, Saved done);
  void asked(const PsPacket& packet);
  void answered(const PsAnswer& answer);
  [[nodiscard]] std::uint64_t version() const { return replica_.node().version(); }
  [[nodiscard]] std::optional<ps::Server::Rows> release() { return replica_.node().release(); }
  void adopt(ps::Server::Rows rows) { replica_.node().adopt(std::move(rows)); }
  [[nodiscard]] bool speaks() const { return replica_.speaks(); }

 private:
  void later(Duration delay, World::Action action);
  void tick();
  void take_up_view(const wire::PsServe& now);
  void hear_copied(const PsPacket& packet, const wire::PsCopied& message);
  void step(const ps::replica::Event& event);
  void run(const ps::node::Effect& effect);
  void run(const ps::replica::Copied& effect);
  void run(const ps::replica::Taken& effect);
  void run(const ps::replica::KeepState& effect);
  void run(const ps::replica::MakePiece& effect);
  void run(const ps::replica::DropState&) { state_.clear(); }
  void run(const wire::PsImage& effect);
  void run(const ps::replica::Broken& effect) { outside_.broken(effect.error); }
  void run(const ps::ReplyTo& effect);
  void run(const ps::node::Decided& effect) { outside_.decided(index_, effect.decision); }
  void run(const ps::node::Tell& effect);
  void run(const ps::node::Saved& effect);
  void run(const ps::node::Serving& effect);
  void run(const ps::node::Restore& effect);
  void run(const ps::node::BeginCut& effect);
  [[nodiscard]] PsSlices own_slices();

  Outside outside_;
  Life life_;
  const Generation generation_;
  const std::uint32_t index_;
  std::vector<std::string> endpoints_;
  ps::Replica replica_;
  std::string backup_;  // empty: none
  std::uint64_t backup_socket_ = 0;
  std::uint64_t copied_over_ = 0;  // socket of the newest copy, which is to be answered
  std::map<std::uint32_t, std::uint64_t> sockets_;  // to the other servers
  std::multimap<std::uint64_t, Saved> ordered_;
  std::multimap<std::uint64_t, Serving> serving_;
  std::optional<std::uint64_t> writing_;  // a checkpoint
  std::uint64_t kept_ = 0;                // the newest image
  std::deque<ps::StatePiece> state_;      // of the image that is sent, as far as it is not made
};

// How often each record is in these rows; kTorn where its three rows differ.
inline constexpr std::uint8_t kTorn = 255;
inline constexpr std::uint64_t kRowsOfRecord = 3;
[[nodiscard]] wire::PsOpen tally_tables();
[[nodiscard]] Model tally_of(const PsSlices& slices, std::uint64_t records);
// The same row by row: the one with the fewest and the one with the most; kTorn in all where
// slices are missing.
struct RowTally {
  std::vector<std::uint8_t> least, most;
};
[[nodiscard]] RowTally row_tally_of(const PsSlices& slices, std::uint64_t records);

}  // namespace antdt::sim
