// A worker's side of a group of parameter servers, on sockets: the shell of its WorkerCalls
// (trainer/ps/calls/worker_calls.h). Nothing is decided here.
//
// ZeroMQ's thread moves bytes whatever this thread does, so a request is on its way while its
// caller computes. Its answer is taken in by the next call that waits, and by advance(), which does
// not wait.
//
// A link belongs to one generation of the group and to one thread. When the group is over, every
// call that waits fails with kAborted, and a new link must be made.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/ids.h"
#include "core/result.h"
#include "core/transport/socket.h"
#include "core/wire/packet.h"
#include "trainer/ps/calls/worker_calls.h"

namespace antdt::ps {

// What a worker needs to know of a group's servers (wire::PsRoster).
struct Peers {
  Generation generation{1};          // messages of other generations change nothing
  std::vector<std::string> servers;  // end points, by index
  Consistency consistency = Consistency::kBarrier;
  Duration give_up{};  // see requests::Start, also for the next one
  Duration again = std::chrono::seconds(2);
  // For tcp: the public keys of the servers, by index, and this process's key pair.
  std::vector<std::string> keys = {};
  transport::KeyPair own = {};
  Duration reach = std::chrono::seconds(10);  // see requests::Start
  // Fault injection: how much longer it takes to send a message of `bytes` bytes.
  std::function<Duration(std::size_t bytes)> send_delay = {};
  // The servers' backups, by index, if they have one (wire::PsRoster).
  std::vector<std::string> others = {};
  std::vector<std::string> other_keys = {};
  // PsRoster::number of this roster; and a function that returns the newest roster if its number is
  // higher, which is called whenever servers are waited for.
  std::uint64_t number = 0;
  std::function<std::optional<wire::PsRoster>(std::uint64_t than)> newer = {};
};

class WorkerLink {
 public:
  using Ticket = WorkerCalls::Ticket;
  using Pulled = WorkerCalls::Pulled;

  // Does not wait: if servers are not there yet, the calls wait for them.
  [[nodiscard]] static Result<std::unique_ptr<WorkerLink>> connect(transport::Context& context,
                                                                   Peers peers, Member self);
  ~WorkerLink();
  WorkerLink(const WorkerLink&) = delete;
  WorkerLink& operator=(const WorkerLink&) = delete;

  // See WorkerCalls; these wait.
  [[nodiscard]] Result<std::uint64_t> open(const wire::PsOpen& tables);
  [[nodiscard]] Status put(const std::vector<TableGradient>& values);
  [[nodiscard]] Result<Pulled> pull(const std::vector<TableKeys>& keys, std::uint64_t clock);
  [[nodiscard]] Result<Pulled> step_pull(const std::vector<TableKeys>& keys,
                                         const wire::PsConcluded& concluded);
  [[nodiscard]] Result<std::uint64_t> idle();
  [[nodiscard]] Result<std::uint64_t> settle();
  // Stages the gradients, commits them at the home, and waits for its decision.
  [[nodiscard]] Result<wire::PsDecided> push(const std::vector<TableGradient>& gradients,
                                             const Pulled& pulled, const wire::PsCommit& commit);

  // The same in parts.
  [[nodiscard]] Status say_part(const std::vector<TableGradient>& gradients,
                                const wire::PsConcluded& concluded, std::uint32_t rank);
  [[nodiscard]] Status await_staged();  // the part that was said
  [[nodiscard]] Result<Ticket> say_pull(const std::vector<TableKeys>& keys, std::uint64_t clock);
  [[nodiscard]] bool is_here(Ticket pull) const { return calls_.is_here(pull); }
  [[nodiscard]] Result<Pulled> take(Ticket pull);  // waits if the rows are not here
  void forget(Ticket pull) { calls_.forget(pull); }
  [[nodiscard]] Status say_push(const std::vector<TableGradient>& gradients, const Pulled& pulled,
                                const wire::PsCommit& commit);
  [[nodiscard]] std::optional<wire::PsDecided> take_decision() { return calls_.take_decision(); }
  [[nodiscard]] bool has_decision() const { return calls_.has_decision(); }

  // Takes in what has arrived and sends what follows from it. wait() blocks until something has
  // arrived; a request must be outstanding.
  [[nodiscard]] Status advance();
  [[nodiscard]] Status wait();

  // See PushOrder and Requests.
  [[nodiscard]] const PushOrder::Said& said() const { return calls_.pushes().said(); }
  [[nodiscard]] std::optional<Duration> take_hop() { return calls_.take_hop(); }

  // From any thread, and final: the call that waits and all later ones fail with kAborted at once.
  void abort();

 private:
  WorkerLink(transport::Context& context, Peers peers, Member self, int wake_fd);
  [[nodiscard]] Status check_open() const;  // kAborted after abort(), or what else is wrong
  void receive();
  void feed(requests::Input input);
  // Carries out the pending effects.
  void perform_all();
  void perform(const requests::OpenRequestLink& effect);
  void perform(const requests::CloseRequestLink& effect);
  void perform(const requests::SendRequest& effect);
  void perform(const requests::LookForRoster& effect);
  void perform(const requests::CheckReach& effect);
  void hold_back(Duration delay) const;
  [[nodiscard]] Result<std::uint64_t> await_answer();

  transport::Context& context_;
  const Peers peers_;
  const int wake_fd_;  // readable after abort()
  const SteadyClock clock_;
  wire::Envelope envelope_;
  std::atomic<bool> aborted_ = false;
  std::optional<Error> failure_;  // why a link could not be made
  WorkerCalls calls_;
  requests::Effects wanted_;  // pending effects
  std::vector<requests::LinkId> links_;
  std::vector<transport::Socket> sockets_;  // sockets of these links
};

}  // namespace antdt::ps
