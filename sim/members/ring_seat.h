// A member's connection to the collective of a generation: carries out what its machine wants of
// the other members. An Abort releases the member from the ring, and changes nothing else.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/members/domain_updates.h"
#include "sim/members/ring.h"
#include "sim/model.h"
#include "trainer/worker/member/effects.h"
#include "trainer/worker/member/inputs.h"

namespace antdt::sim {

class Worker;

// The model of a member, and the step that it trains.
struct MemberModel {
  Model model;
  std::vector<Record> batch;  // the records of the step that it has computed
  // In a shared step: its own part, and the run of another's part that it was handed.
  std::vector<Record> part;
  std::vector<Record> handed;
  std::uint64_t skipped = 0;  // how many of these records the program skipped
  std::shared_ptr<const Ring::Contributions> gathered;
  bool local = false;  // the step applies this member's records only
  // The model from before it was mixed, or took others' updates, in this step.
  std::optional<Model> before;
  std::string domain;                    // of this member, if domains exchange updates
  std::optional<double> visited_under;   // in a step with a visit: the threshold of its exchange
  std::vector<std::uint32_t> sums_with;  // BeginStep
};

class RingSeat {
 public:
  using Answer = std::optional<worker::Input>;
  RingSeat(Worker& worker, MemberModel& state) : worker_(worker), state_(state) {}

  [[nodiscard]] Answer perform(const worker::LeaveCollective& effect);
  [[nodiscard]] Answer perform(const worker::AbandonStep& effect);
  [[nodiscard]] Answer perform(const worker::BuildCollective& effect);
  [[nodiscard]] Answer perform(const worker::ConnectCollective& effect);
  [[nodiscard]] Answer perform(const worker::CompareStates& effect);
  [[nodiscard]] Answer perform(const worker::Consolidate& effect);
  [[nodiscard]] Answer perform(const worker::PassState& effect);
  [[nodiscard]] Answer perform(const worker::Mix& effect);
  [[nodiscard]] Answer perform(const worker::ExchangeUpdates& effect);
  [[nodiscard]] Answer perform(const worker::OfferPart& effect);
  [[nodiscard]] Answer perform(const worker::AskForRun& effect);
  [[nodiscard]] Answer perform(const worker::GatherSlots& effect);
  // Of the contributions that were gathered in this step, this member's own.
  [[nodiscard]] const Contribution& own() const { return state_.gathered->at(rank_); }
  // For a sabotage: the places of the members of the base after the last step that any holder of
  // its state concluded, in whose replica ever they are. Empty: replicas were equal.
  [[nodiscard]] const std::vector<wire::MemberPlace>& concluded() const { return concluded_; }
  // The records of a run of a shared step.
  [[nodiscard]] std::span<const Record> records_of(const worker::sharing::Run& run) const;
  // The newest generation is over.
  void abort();
  void leave(bool silently);
  [[nodiscard]] std::uint32_t rank() const { return static_cast<std::uint32_t>(rank_); }
  // The operation that waits for the others was answered.
  void stop_waiting() { waits_ = false; }

 private:
  using AsInput =
      std::function<worker::Input(const std::shared_ptr<const Ring::Contributions>& all)>;
  // Answers with the exchange's result, or with the news that it broke.
  void exchange(Contribution mine, AsInput as_input);
  // The replicas of the group are mixed into this member's; then `done` makes the answer.
  void mix(const Ring::Group& group, const std::string& what, std::function<worker::Input()> done);
  void take(const Model& other);
  // In ring_updates.cc: updates between domains.
  struct Updating;
  using Messages = std::vector<DomainMessage>;
  using UpdatesDone = std::function<worker::Input(Model next, const std::vector<Record>& gained)>;
  struct UpdatesAbout {
    std::string what;
    bool whole = false;
    double threshold = 0;
  };
  void exchange_updates(const std::vector<worker::DomainRanks>& domains, UpdatesAbout about,
                        Model next, UpdatesDone done);
  void consolidate_domains(const worker::Consolidate& effect);
  void meet(const std::shared_ptr<Updating>& on, bool across, std::shared_ptr<const Messages> mine);
  void pass_on(const std::shared_ptr<Updating>& on, std::shared_ptr<const Messages> came);
  void take_all(Updating& on, const Messages& messages);
  void check_gained(const std::vector<Record>& gained);
  void check_threshold(const Updating& on, const Contribution& other);
  // Begins to wait for the others; returns the number of the operation, for its answer.
  [[nodiscard]] std::uint64_t wait();
  void answered(std::uint64_t operation, worker::Input input);
  [[nodiscard]] ShareTable& table();
  void ask(std::uint64_t operation, const worker::sharing::Asked& asked);
  void break_up();

  Worker& worker_;
  MemberModel& state_;
  Ring* ring_ = nullptr;
  std::size_t rank_ = 0;
  std::uint32_t in_group_ = 0;  // its index among the members with which it shares
  std::vector<wire::MemberPlace> concluded_;
  bool waits_ = false;  // the operation that is under way waits for the others
  std::shared_ptr<bool> there_ = std::make_shared<bool>(true);  // expires with this process
};

}  // namespace antdt::sim
