// A simulated worker's link to a group of servers. What the worker's machine wants of servers is
// sent over the link (ps_link.h), and when a packet has come the operation that waits is looked at
// again. Packets that come while the thread computes are taken in when it is done, as in the real
// process.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/servers/ps_link.h"
#include "trainer/worker/servers/ps_effects.h"
#include "trainer/worker/servers/ps_inputs.h"

namespace antdt::sim {

namespace ps_worker = worker::ps_worker;

class PsGroup {
 public:
  using Answer = std::optional<ps_worker::Input>;
  // The thread and its process.
  struct Outside {
    PsLink::Outside link;                   // everything except `due`
    std::function<void(Generation)> begin;  // a generation begins
    std::function<bool()> over;             // whether the generation is over
    std::function<void()> begin_operation;  // begins the operation that waits for servers
    std::function<void(ps_worker::Input)> answer;
    std::function<void(const std::string&)> refused;  // a server refused, although the group is not
                                                      // over
  };
  PsGroup(Outside outside, Member self) : outside_(std::move(outside)), self_(self) {}

  // ---- what the machine wants
  [[nodiscard]] Answer perform(const ps_worker::OpenServers& effect);
  [[nodiscard]] Answer perform(const ps_worker::ForgetPull& effect);
  [[nodiscard]] Answer perform(const ps_worker::SayCentrePull& effect);
  [[nodiscard]] Answer perform(const ps_worker::AwaitRows& effect);
  [[nodiscard]] Answer perform(const ps_worker::AwaitServers& effect);
  [[nodiscard]] Answer perform(const ps_worker::SayIdle& effect);
  [[nodiscard]] Answer perform(const ps_worker::SettleServers& effect);
  void say_pull(const std::vector<std::uint64_t>& keys, std::uint64_t clock);
  // What a push carries for each row of the centre.
  struct Exchange {
    std::optional<float> value;
    bool alone = false;  // the push has no records
  };
  [[nodiscard]] Answer say_push(std::vector<std::uint64_t> keys, float value, Exchange exchange,
                                const wire::PsCommit& commit);
  // Whether the rows of the centre that were requested have come; once for each request.
  [[nodiscard]] bool take_centre();
  // Waits for the rows of the pull that was sent, and goes on with `next`.
  [[nodiscard]] Answer await_pull(std::function<Answer()> next);
  void leave();

  // ---- what happens
  void answered(PsAnswer&& answer);
  // Wakes the thread up if it waits for servers.
  void wake();
  // Another operation has begun, or this one was answered.
  void stop_waiting() {
    look_ = nullptr;
    ++operations_;
  }

  // Takes in what has come, without waiting. Returns false if the group is over.
  [[nodiscard]] bool advance();
  [[nodiscard]] ps_worker::Input lost();
  // Null if no link is open.
  [[nodiscard]] ps::WorkerCalls* calls() { return link_ ? &link_->calls() : nullptr; }

 private:
  using Look = std::function<Answer()>;
  // Waits until `look` returns an answer.
  [[nodiscard]] Answer await(Look look);
  // Waits for the result of a call to all servers.
  using Next = std::function<Answer(std::uint64_t answer)>;
  [[nodiscard]] Answer await_call(Next next);
  [[nodiscard]] Answer rows_pulled();
  [[nodiscard]] MonoTime now() const { return outside_.link.now(); }

  Outside outside_;
  const Member self_;
  std::unique_ptr<PsLink> link_;
  std::optional<Error> error_;                   // of a call over the link
  Look look_;                                    // the condition of the operation that waits for
                                                 // servers
  std::uint64_t operations_ = 0;                 // how many operations there were
  std::optional<ps::WorkerCalls::Ticket> pull_;  // the pull for the next batch
  std::optional<ps::WorkerCalls::Ticket> centre_pull_;
  ps::WorkerCalls::Pulled centre_;
  ps::WorkerCalls::Pulled pulled_;  // the rows of the batch that is being trained
};

}  // namespace antdt::sim
