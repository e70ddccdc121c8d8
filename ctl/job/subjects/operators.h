// Requests of operators and of the controller: whether they can be granted now, and which machine
// carries them out.
#pragma once

#include <optional>

#include "core/result.h"
#include "ctl/job/job_events.h"

namespace antdt::ctl::job {

struct Parts;
class Work;

class Operators {
 public:
  explicit Operators(Parts& parts) : parts_(parts) {}

  // Whether the request can be granted; the error says why it cannot.
  [[nodiscard]] Status check(const lifecycle::EvictionRequested& e) const;
  [[nodiscard]] Status check(const lifecycle::RestartRequested& e) const;
  [[nodiscard]] Status check(const lifecycle::WorkerCountRequested& e) const;
  [[nodiscard]] Status check(const lifecycle::ServerCountRequested& e) const;
  [[nodiscard]] Status check(const wire::SkipRecords& order) const;

  // Carries the request out if it can be granted.
  void ask(const lifecycle::EvictionRequested& e, Work& work);
  void ask(const lifecycle::RestartRequested& e, Work& work);
  void ask(const lifecycle::WorkerCountRequested& e, Work& work);
  void ask(const lifecycle::ServerCountRequested& e, Work& work);
  void on(const SkipOrdered& e, Work& work);
  void on(const OperatorAsked& e, Work& work);
  // Moves the servers on drained hosts to others, one after the other. For each tick.
  void move_drained_servers(Work& work);

 private:
  // The eviction of a server's process means that this server is to run elsewhere.
  [[nodiscard]] std::optional<lifecycle::RestartRequested> server_to_move(
      const lifecycle::EvictionRequested& e) const;

  Parts& parts_;
};

}  // namespace antdt::ctl::job
