// A group of servers as a simulated worker's training thread has it: what the worker's machine
// wants of servers is said over the link (ps_link.h), and what is waited for is looked at whenever
// something has come. What comes while the thread computes is taken in when it is done, as by the
// real one.
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
  // The thread and the process that it is in.
  struct Outside {
    PsLink::Outside link;                   // but for `due`
    std::function<void(Generation)> begin;  // what follows is of this generation
    std::function<bool()> over;             // the generation is
    std::function<void()> begin_operation;  // the one that waits for servers
    std::function<void(ps_worker::Input)> answer;
    std::function<void(const std::string&)> refused;  // a server did, and the group is not over
  };
  PsGroup(Outside outside, Member self) : outside_(std::move(outside)), self_(self) {}

  // ---- what the machine wants
  [[nodiscard]] Answer perform(const ps_worker::OpenServers& effect);
  [[nodiscard]] Answer perform(const ps_worker::ForgetPull& effect);
  [[nodiscard]] Answer perform(const ps_worker::AwaitRows& effect);
  [[nodiscard]] Answer perform(const ps_worker::AwaitServers& effect);
  [[nodiscard]] Answer perform(const ps_worker::SayIdle& effect);
  [[nodiscard]] Answer perform(const ps_worker::SettleServers& effect);
  void say_pull(const std::vector<std::uint64_t>& keys, std::uint64_t clock);
  [[nodiscard]] Answer say_push(std::vector<std::uint64_t> keys, float value,
                                const wire::PsCommit& commit);
  // Waits for the rows of the pull that was said, and goes on with `next`.
  [[nodiscard]] Answer await_pull(std::function<Answer()> next);
  void leave();

  // ---- what happens
  void answered(PsAnswer answer);
  // The thread wakes up, if it waits for servers.
  void wake();
  // Another operation has begun, or this one has its answer.
  void stop_waiting() {
    look_ = nullptr;
    ++operations_;
  }

  // Takes in what has come, without waiting; false: the group is over.
  [[nodiscard]] bool advance();
  [[nodiscard]] ps_worker::Input lost();
  // Null: none is open.
  [[nodiscard]] ps::WorkerCalls* calls() { return link_ ? &link_->calls() : nullptr; }

 private:
  using Look = std::function<Answer()>;
  // Waits until `look` has an answer.
  [[nodiscard]] Answer await(Look look);
  // Waits for what a call to all servers comes to.
  using Next = std::function<Answer(std::uint64_t answer)>;
  [[nodiscard]] Answer await_call(Next next);
  [[nodiscard]] Answer rows_pulled();
  [[nodiscard]] MonoTime now() const { return outside_.link.now(); }

  Outside outside_;
  const Member self_;
  std::unique_ptr<PsLink> link_;
  std::optional<Error> error_;                   // of a call over it
  Look look_;                                    // of the operation that waits for servers
  std::uint64_t operations_ = 0;                 // that there were
  std::optional<ps::WorkerCalls::Ticket> pull_;  // of the next batch
  ps::WorkerCalls::Pulled pulled_;               // the rows of the batch that is trained
};

}  // namespace antdt::sim
