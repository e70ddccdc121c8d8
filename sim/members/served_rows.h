// A member's way to the servers that hold its embedding rows (sync = "hybrid"), as
// trainer/loop/served/linked_rows.h goes it over sockets: the calls are those that ship
// (trainer/ps/calls/worker_calls.h), on a simulated link (sim/servers/ps_link.h). The rows are
// three counters for each record, which must always be what the member's replica counts.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/model.h"
#include "sim/servers/ps_link.h"
#include "trainer/worker/member/effects.h"
#include "trainer/worker/member/inputs.h"

namespace antdt::sim {

class Worker;

class ServedRows {
 public:
  using Answer = std::optional<worker::Input>;
  using Next = std::function<Answer()>;
  explicit ServedRows(Worker& worker) : worker_(worker) {}

  [[nodiscard]] Answer perform(const worker::UseServers& effect);
  [[nodiscard]] Answer perform(const worker::SendPart& effect);
  [[nodiscard]] Answer perform(const worker::AwaitPartStaged& effect);
  // Waits for the rows of these records as they are after the step that was concluded, and goes on
  // with `next`. No records: the servers are told what was concluded.
  [[nodiscard]] Answer pull(std::span<const Record> records, Next next);
  // The thread waits until the servers know what was concluded. `done` is called with the reason if
  // they are not reached, or with "".
  void conclude(std::function<void(std::string error)> done);
  // Where the servers put their slices of a checkpoint.
  [[nodiscard]] std::string directory_of(std::uint64_t cut) const;
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

 private:
  using Look = std::function<Answer()>;
  // Waits until `look` returns an answer.
  [[nodiscard]] Answer await(Look look);
  // Waits for the result of a call to all servers.
  [[nodiscard]] Answer await_call(Next next);
  // Opens the tables, if that was not done over this link, and goes on with `next`.
  [[nodiscard]] Answer opened(Next next);
  [[nodiscard]] Answer say_pull(const std::vector<Record>& records, Next next);
  [[nodiscard]] bool advance();
  [[nodiscard]] worker::Input lost();
  void answer(std::uint64_t operation, worker::Input input);
  void tell_concluded(std::string error);
  [[nodiscard]] bool leaves_out() const;
  [[nodiscard]] wire::PsConcluded concluded() const;
  void check_rows(const std::vector<Record>& records, const ps::WorkerCalls::Pulled& pulled) const;

  Worker& worker_;
  std::unique_ptr<PsLink> link_;
  Generation group_;
  bool open_ = false;
  std::optional<Error> error_;
  std::function<void(std::string)> concluding_;
  Look look_;  // empty: nothing is waited for
  std::uint64_t operations_ = 0;
};

}  // namespace antdt::sim
