// A parameter server as a process: what trainer/ps_server/server_agent.h does.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sim/hosts/program.h"
#include "sim/servers/ps_server_loop.h"

namespace antdt::sim {

class PsServer final : public Program {
 public:
  using Program::Program;

  void start() override;
  void receive(Told message) override;
  void terminate() override;
  void asked(const PsPacket& packet) override;
  void answered(const PsAnswer& answer) override;
  [[nodiscard]] std::string doing() const override;
  // Of an attempt on a host.
  [[nodiscard]] static std::string endpoint_of(Member member, const std::string& host) {
    return fmt::format("{}.{}@{}", member.worker, member.attempt, host);
  }

 private:
  void say_again();
  void report();
  void say(decltype(Said::body) body, Generation generation = {}, std::uint64_t seq = 0);
  void hear(const Told& message);
  void on(const wire::WorkerWelcome& welcome);
  void on(const wire::Refused& refused);
  void on(const wire::PsServe& message, Generation generation);
  void on(const wire::PsCut& message, Generation generation);
  [[nodiscard]] bool open_group(const wire::PsServe& message, Generation generation);
  [[nodiscard]] PsServerLoop::Outside outside_of(Generation generation);

  bool greeted_ = false;
  std::optional<wire::WorkerWelcome> welcome_;
  std::uint64_t turn_ = 0;  // of say_again
  Generation generation_;
  wire::PsServe serve_;  // that is in force
  std::unique_ptr<PsServerLoop> server_;
  std::vector<PsPacket> unread_;  // of its socket, before there is a group
  std::set<std::uint64_t> cutting_;
};

}  // namespace antdt::sim
