// What operators ask for, and the controller on its own: whether it can be done now, and by whom.
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

  // Whether it can be done; the error says why not.
  [[nodiscard]] Status check(const lifecycle::EvictionRequested& e) const;
  [[nodiscard]] Status check(const lifecycle::RestartRequested& e) const;
  [[nodiscard]] Status check(const lifecycle::WorkerCountRequested& e) const;
  [[nodiscard]] Status check(const lifecycle::ServerCountRequested& e) const;
  [[nodiscard]] Status check(const wire::SkipRecords& order) const;

  // Does it if it can be done.
  void ask(const lifecycle::EvictionRequested& e, Work& work);
  void ask(const lifecycle::RestartRequested& e, Work& work);
  void ask(const lifecycle::WorkerCountRequested& e, Work& work);
  void ask(const lifecycle::ServerCountRequested& e, Work& work);
  void on(const SkipOrdered& e, Work& work);
  void on(const OperatorAsked& e, Work& work);

 private:
  // What an eviction means where it names a process of a server: that this server is to run
  // elsewhere.
  [[nodiscard]] std::optional<lifecycle::RestartRequested> server_to_move(
      const lifecycle::EvictionRequested& e) const;

  Parts& parts_;
};

}  // namespace antdt::ctl::job
