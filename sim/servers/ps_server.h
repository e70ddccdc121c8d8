// A parameter server as a process: the ServerProcess that ships
// (trainer/ps/process/server_process.h), driven in virtual time.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "sim/hosts/program.h"
#include "sim/options.h"
#include "sim/servers/mean_checks.h"
#include "sim/servers/ps_server_loop.h"
#include "trainer/ps/process/server_process.h"

namespace antdt::sim {

class PsServer final : public Program {
 public:
  PsServer(World& world, const Surroundings& around, Sabotage sabotage, const Place& place)
      : Program(world, around, place), sabotage_(sabotage) {}

  void start() override;
  void receive(Told message) override;
  void terminate() override;
  void asked(PsPacket packet) override;
  void answered(PsAnswer answer) override;
  [[nodiscard]] std::string doing() const override;

 private:
  void tick();
  void pulse();
  void say(decltype(Said::body) body, Generation generation = {});
  void hear(const Told& message);
  void feed(ps::process::Input input);
  void perform(const ps::process::SayHello& effect);
  void perform(const ps::process::TellOperator& effect) {
    world_.say("{}.{}: {}", member_.worker, member_.attempt, effect.text);
  }
  void perform(const ps::process::SayJoin& effect);
  void perform(const ps::process::OpenEndPoint& effect);
  void perform(const ps::process::BeginGroup& effect);
  void perform(const ps::process::OrderGroup& effect);
  void perform(const ps::process::OrderSlices& effect);
  void perform(const ps::process::AnswerGroupOrder& effect);
  void perform(const ps::process::RefuseGroupOrder& effect);
  void perform(const ps::process::AnswerCutOrder& effect);
  void perform(const ps::process::SayReport& effect);
  void perform(const ps::process::SayStats&) {}  // nobody reads them here
  void perform(const ps::process::EndProcess& effect) { exit(effect.code); }
  void perform(const ps::process::GiveUpProcess& effect);
  [[nodiscard]] PsServerLoop::Outside outside_of(Generation generation);

  const Sabotage sabotage_;
  ps::ServerProcess machine_{member_, "its socket", clock_.now()};
  std::deque<ps::process::Input> inputs_;  // inputs that are not fed yet
  bool feeding_ = false;
  std::unique_ptr<PsServerLoop> server_;
  MeanChecks::Seen seen_;         // of this group
  std::vector<PsPacket> unread_;  // packets on its socket before there is a group
};

}  // namespace antdt::sim
