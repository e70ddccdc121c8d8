// A worker's side of a group of parameter servers, on sockets: the shell of its WorkerCalls
// (trainer/ps/calls/worker_calls.h). Nothing is decided here.
//
// Bytes move in ZeroMQ's thread whatever this one does, so a request that was said is on its way
// while its caller computes; its answer is taken in by whatever call waits, and by advance(), which
// does not wait.
//
// A link belongs to one generation of the group and to one thread: when the group is over, every
// call that waits fails with kAborted, and a new link is made.
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

// The servers of a group as a worker needs them (wire::PsRoster).
struct Peers {
  Generation generation{1};          // what is said in another one changes nothing
  std::vector<std::string> servers;  // end points, by index
  Consistency consistency = Consistency::kBarrier;
  Duration give_up{};  // as of requests::Start, like the next
  Duration again = std::chrono::seconds(2);
  // Over tcp: the public keys of the servers, by index, and this process's pair.
  std::vector<std::string> keys = {};
  transport::KeyPair own = {};
  Duration reach = std::chrono::seconds(10);  // as of requests::Start
  // A drill: how much longer a message of so many bytes takes to be sent.
  std::function<Duration(std::size_t bytes)> send_delay = {};
  // Backups of the servers, by index, where they have one (wire::PsRoster).
  std::vector<std::string> others = {};
  std::vector<std::string> other_keys = {};
  // PsRoster::number of all this, and the newest there is, if it is newer than one of that
  // number: asked for whenever servers are waited for.
  std::uint64_t number = 0;
  std::function<std::optional<wire::PsRoster>(std::uint64_t than)> newer = {};
};

class WorkerLink {
 public:
  using Ticket = WorkerCalls::Ticket;
  using Pulled = WorkerCalls::Pulled;

  // Waits for nobody: servers that are not there yet are waited for by the calls.
  [[nodiscard]] static Result<std::unique_ptr<WorkerLink>> connect(transport::Context& context,
                                                                   Peers peers, Member self);
  ~WorkerLink();
  WorkerLink(const WorkerLink&) = delete;
  WorkerLink& operator=(const WorkerLink&) = delete;

  // As of WorkerCalls; these wait.
  [[nodiscard]] Result<std::uint64_t> open(const wire::PsOpen& tables);
  [[nodiscard]] Status put(const std::vector<TableGradient>& values);
  [[nodiscard]] Result<Pulled> pull(const std::vector<TableKeys>& keys, std::uint64_t clock);
  [[nodiscard]] Result<std::uint64_t> idle();
  [[nodiscard]] Result<std::uint64_t> settle();
  // Stages the gradients, commits them at the home, and waits for its decision.
  [[nodiscard]] Result<wire::PsDecided> push(const std::vector<TableGradient>& gradients,
                                             const Pulled& pulled, const wire::PsCommit& commit);

  // In parts.
  [[nodiscard]] Result<Ticket> say_pull(const std::vector<TableKeys>& keys, std::uint64_t clock);
  [[nodiscard]] bool is_here(Ticket pull) const { return calls_.is_here(pull); }
  [[nodiscard]] Result<Pulled> take(Ticket pull);  // waits where it is not here
  void forget(Ticket pull) { calls_.forget(pull); }
  [[nodiscard]] Status say_push(const std::vector<TableGradient>& gradients, const Pulled& pulled,
                                const wire::PsCommit& commit);
  [[nodiscard]] std::optional<wire::PsDecided> take_decision() { return calls_.take_decision(); }
  [[nodiscard]] bool has_decision() const { return calls_.has_decision(); }

  // Takes in what has come and says what follows from it. wait() blocks until something
  // has come, of whatever is under way; something must be.
  [[nodiscard]] Status advance();
  [[nodiscard]] Status wait();

  // As of PushOrder and Requests.
  [[nodiscard]] const PushOrder::Said& said() const { return calls_.pushes().said(); }
  [[nodiscard]] std::optional<Duration> take_hop() { return calls_.take_hop(); }

  // From any thread, once and for all: the call that waits and all later ones fail
  // with kAborted at once.
  void abort();

 private:
  WorkerLink(transport::Context& context, Peers peers, Member self, int wake_fd);
  [[nodiscard]] Status check_open() const;  // kAborted once it was, or what else is wrong
  void receive();
  void feed(requests::Input input);
  // Does what is wanted by now.
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
  const int wake_fd_;  // readable once aborted
  const SteadyClock clock_;
  wire::Envelope envelope_;
  std::atomic<bool> aborted_ = false;
  std::optional<Error> failure_;  // a link could not be made
  WorkerCalls calls_;
  requests::Effects wanted_;  // and not done yet
  std::vector<requests::LinkId> links_;
  std::vector<transport::Socket> sockets_;  // of these
};

}  // namespace antdt::ps
