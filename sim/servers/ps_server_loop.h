// The surroundings of a parameter server in one group. The LinkedServer is the code that ships
// (trainer/ps/process/linked_server.h), driven in virtual time; its sockets, children and files are
// simulated.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/model.h"
#include "sim/options.h"
#include "sim/servers/ps_packets.h"
#include "sim/world.h"
#include "trainer/ps/process/linked_server.h"

namespace antdt::sim {

// For Sabotage::kStaleCentre: takes the rows of the centre back to where they were before the last
// exchange, so that the next one moves them from there.
class StaleCentre {
 public:
  void before_step(ps::ServerNode& node);
  void after_step(ps::ServerNode& node);

 private:
  static void set_rows(ps::ServerNode& node, const std::vector<float>& values);

  std::vector<float> older_, newer_;
  std::uint64_t exchanges_ = 0;
};

class PsServerLoop {
 public:
  // The process of this loop.
  struct Outside {
    std::function<void(Duration, World::Action)> later;
    std::function<void(const std::string& address, PsPacket)> ask;
    std::function<void(PsAnswer)> answer;
    // Writes slices; returns the error, or "".
    std::function<std::string(const std::string& directory, const PsSlices&)> write;
    // Returns null if they are damaged.
    std::function<const PsSlices*(const std::string& directory)> read;
    std::function<bool()> files_are_away;  // nothing can be read for a while
    std::function<void(std::uint32_t home, const wire::PsDecision&)> decided;
    std::function<std::uint64_t()> new_socket;
    std::function<Duration()> time_to_write;
    std::function<Duration()> time_to_make_piece;
    std::function<bool()> loses_child;  // whether the child that writes them is lost
    std::function<void(const wire::PsServing&)> serving;
    std::function<void(const wire::PsSaved&)> saved;
    std::function<void(const ps::replica::BreakUp&)> broken;  // the server cannot be a backup
    std::function<void(const ps::LinkedServer&)> stepped;
    Sabotage sabotage = Sabotage::kNone;
  };
  PsServerLoop(Outside outside, const ps::linked::Start& start);

  void serve(const wire::PsServe& order) { feed(ps::linked::GroupOrdered{order}); }
  void cut(const wire::PsCut& order) { feed(ps::linked::of_node(ps::node::SlicesOrdered{order})); }
  void asked(PsPacket packet);
  void answered(const PsAnswer& answer);
  [[nodiscard]] std::uint64_t version() const { return server_.node().version(); }
  [[nodiscard]] std::optional<ps::Server::Rows> release() { return server_.node().release(); }
  void adopt(ps::Server::Rows rows) { server_.node().adopt(std::move(rows)); }

 private:
  struct Link {
    std::string address;
    std::uint64_t socket = 0;
  };
  void later(Duration delay, World::Action action);
  void tick();
  void feed(ps::linked::Input input);
  void perform_all(ps::linked::Effects& effects);
  void answer(ps::node::Input input);  // is fed before all inputs that wait
  void ask(const Link& link, PsAsk body);
  void perform(ps::ReplyTo& effect);
  void perform(const ps::node::RecordDecision& effect);
  void perform(const ps::node::TellServer& effect);
  void perform(const ps::node::AnswerCut& effect) { outside_.saved(effect.saved); }
  void perform(const ps::node::AnswerServe& effect) { outside_.serving(effect.serving); }
  void perform(const ps::node::ReadSlices& effect);
  void perform(const ps::node::WriteSlices& effect);
  void perform(const ps::linked::StopWriting&) { writing_.reset(); }
  void perform(const ps::replica::BreakUp& effect) { outside_.broken(effect); }
  void perform(const ps::replica::KeepState& effect);
  void perform(const ps::replica::MakePiece& effect);
  void perform(const ps::replica::DropState&) { state_.clear(); }
  void perform(const ps::linked::OpenLink& effect);
  void perform(const ps::linked::OpenBackupLink& effect);
  void perform(const ps::linked::CloseBackupLink&) { backup_.reset(); }
  void perform(ps::linked::SendCopy& effect) { ask(*backup_, std::move(effect.copied)); }
  void perform(ps::linked::SendImage& effect) { ask(*backup_, std::move(effect.image)); }
  void perform(const ps::linked::AnswerPrimary& effect);
  [[nodiscard]] PsSlices own_slices();
  Outside outside_;
  Life life_;
  ps::LinkedServer server_;
  std::deque<ps::linked::Input> inputs_;  // inputs that are not fed yet
  bool feeding_ = false;
  std::map<std::uint32_t, Link> links_;  // to the other servers
  std::optional<Link> backup_;
  std::optional<std::uint64_t> writing_;  // the checkpoint that is being written
  std::uint64_t kept_ = 0;                // the newest image
  std::deque<ps::StatePiece> state_;      // the remaining pieces of the image that is being sent
  StaleCentre stale_;                     // for a sabotage
};

}  // namespace antdt::sim
