// The simple level: a program that works through records by itself and only reports how long each
// batch took.
//
//   ANTDT_TRY(auto loose, client::Loose::start(environment));
//   while (true) {
//     ANTDT_TRY(const auto work, loose->next(256));   // commits the work before
//     if (!work) break;                               // the job is over
//     ... read work->pieces, train ...
//     loose->report(data_time, compute_time, Duration{});
//   }
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/result.h"
#include "trainer/client/client.h"

namespace antdt::client {

// Records to work through, in this order.
struct Work {
  bool evaluation = false;  // true: evaluate them; false: train on them
  Epoch epoch;
  std::vector<wire::Piece> pieces;
  std::uint64_t records = 0;
  std::uint64_t phase = 0;
};

// Used by one thread at a time.
class Loose {
 public:
  // Connects and joins without collectives.
  [[nodiscard]] static Result<std::unique_ptr<Loose>> start(const Environment& environment,
                                                            const wire::DataIdentity& data = {});
  // With a client that is connected and has sent nothing else.
  [[nodiscard]] static std::unique_ptr<Loose> start(std::unique_ptr<Client> client,
                                                    const wire::DataIdentity& data);

  // Commits the records of the previous work, then returns at most `max_records` more, waiting as
  // long as necessary; empty if the job is over or this worker is asked to leave.
  [[nodiscard]] Result<std::optional<Work>> next(std::uint64_t max_records);
  // The same, but waits at most for `patience`: kWait if nothing has come by then, kEnd where
  // next() returns nothing.
  struct Next {
    TakeStatus status = TakeStatus::kWait;
    Work work = {};  // set with kData
  };
  [[nodiscard]] Result<Next> next(std::uint64_t max_records, Duration patience);
  // The program could not use record number `index` of that work: its outcome is skipped, instead
  // of trained, if it is committed. Only of training data.
  void skip(std::uint64_t index, std::string reason);
  // The times of the work that the last next() returned.
  void report(Duration data, Duration compute, Duration wait);

  [[nodiscard]] Client& client() { return *client_; }

 private:
  explicit Loose(std::unique_ptr<Client> client) : client_(std::move(client)) {}
  // Obeys the next order, if one comes. False: the job is over, or this worker leaves.
  [[nodiscard]] Result<bool> obey_next(Duration patience);

  std::unique_ptr<Client> client_;
  std::optional<wire::PhaseStart> phase_;
  std::uint64_t place_ = 0;    // records returned in this phase
  std::uint64_t records_ = 0;  // records of the last work
};

}  // namespace antdt::client
