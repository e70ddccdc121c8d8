// What a parameter server is to one group: the real machines (trainer/ps), and
// around them what trainer/ps_link/server_loop.h does.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/model.h"
#include "sim/ps_packets.h"
#include "sim/world.h"
#include "trainer/ps/closer.h"
#include "trainer/ps/server.h"

namespace antdt::sim {

struct PsGroup {
  Generation generation;
  ps::Consistency consistency = ps::Consistency::kBarrier;
  std::vector<std::string> endpoints;
  std::vector<Member> workers;
  std::uint32_t backups = 0;
  std::string restore;
  std::uint64_t version = 0;
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
    std::function<void(const wire::PsDecision&)> decided;
    std::function<std::uint64_t()> new_socket;
    std::function<Duration()> time_to_write;
  };
  PsServerLoop(Outside outside, PsGroup group, std::uint32_t index);

  void serve(const wire::PsServe& now);
  [[nodiscard]] std::vector<wire::PsPlaces> left(const std::vector<wire::PsMember>& members) const;
  using Saved = std::function<void(const wire::PsSaved&)>;
  void cut(const wire::PsCut& order, Saved done);
  void asked(const PsPacket& packet);
  void answered(const PsAnswer& answer);
  [[nodiscard]] std::uint64_t version() const { return server_.version(); }

 private:
  struct Peer {
    std::uint32_t index = 0;
    std::uint64_t socket = 0;
    std::uint64_t sent = 0;
    std::uint64_t acknowledged = 0;
    std::uint64_t acknowledged_before = 0;
  };
  struct Cut {
    std::vector<wire::PsPlaces> places;  // at this home's marker
    bool begun = false;
    std::optional<wire::PsSaved> outcome;
    std::vector<Saved> askers;
  };
  void later(Duration delay, World::Action action);
  void on(const PsPacket& packet, const wire::PsOpen& m);
  void on(const PsPacket& packet, const wire::PsPut& m) { ask_server(packet, m); }
  void on(const PsPacket& packet, const wire::PsPull& m) { ask_server(packet, m); }
  void on(const PsPacket& packet, const wire::PsPush& m) { ask_server(packet, m); }
  void on(const PsPacket& packet, const wire::PsIdle& m);
  void on(const PsPacket& packet, const wire::PsCommit& m);
  void on(const PsPacket& packet, const wire::PsDecision& m);
  template <class M>
  void ask_server(const PsPacket& packet, const M& m) {
    server_.on(asker_of(packet), m, replies_);
  }
  [[nodiscard]] static ps::Asker asker_of(const PsPacket& packet) {
    return {std::to_string(packet.socket), packet.from, packet.seq};
  }
  [[nodiscard]] bool is_home_of(WorkerId worker) const;
  void add_workers(const std::vector<Member>& workers);
  void run(const ps::Closer::Effects& effects);
  wire::PsApplied apply(std::uint32_t home, const wire::PsDecision& decision);
  void distribute(Peer& peer);
  void say_again();
  [[nodiscard]] bool restore_slices();
  [[nodiscard]] PsSlices own_slices() const;
  [[nodiscard]] std::string hindrance(std::uint64_t number) const;
  [[nodiscard]] Cut& cut_of(std::uint64_t number);
  void mark_cut(std::uint64_t number, const std::string& directory);
  void begin_cut(const ps::Server::Cut& due);
  void drop_cuts_before(std::uint64_t number);
  void finish_cut(wire::PsSaved saved);
  void reply(const ps::Asker& to, PsReply body);
  void flush();

  Outside outside_;
  Life life_;
  PsGroup group_;
  std::uint32_t index_;
  ps::Server server_;
  ps::Closer closer_;
  std::map<Member, ps::Asker> committing_;
  std::deque<wire::PsDecision> decisions_;  // not acknowledged by all yet
  std::vector<Peer> peers_;
  std::vector<ps::ReplyTo> replies_;
  std::vector<PsAnswer> unsent_;
  std::map<std::uint64_t, Cut> cuts_;
  bool writing_ = false;
};

// How often each record is in these rows; kTorn where its three rows differ.
inline constexpr std::uint8_t kTorn = 255;
inline constexpr std::uint64_t kRowsOfRecord = 3;
[[nodiscard]] wire::PsOpen tally_tables();
[[nodiscard]] Model tally_of(const PsSlices& slices, std::uint64_t records);

}  // namespace antdt::sim
