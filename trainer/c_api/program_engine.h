// The program as the engine of a member: what the member's driver wants computed becomes an order,
// and the driver's thread waits for the answer.
#pragma once

#include <functional>
#include <utility>

#include "core/result.h"
#include "trainer/c_api/program/evaluations.h"
#include "trainer/c_api/program/exchange.h"
#include "trainer/c_api/program/reductions.h"
#include "trainer/c_api/program/state_parts.h"
#include "trainer/c_api/program/upcoming.h"
#include "trainer/loop/engine.h"

namespace antdt::capi {

// Thrown out of the driver where an engine cannot answer with an error, when the program failed or
// closed the job.
struct ProgramGone {
  Error error;
};

class ProgramEngine final : public trainer::Engine {
 public:
  // Where training stands, for the orders.
  struct Standing {
    Step step;
    Generation generation;
  };
  struct Links {
    Exchange& exchange;
    Reductions& reductions;
    Upcoming& upcoming;
    StateParts& state;
    Evaluations& evaluations;
    std::function<Standing()> standing;
    std::function<bool()> generation_is_over;
    bool state_on_request = false;
  };
  explicit ProgramEngine(Links links) : links_(std::move(links)) {}

  void phase_began(const wire::PhaseStart& start, trainer::Collective& collective) override;
  void phase_ended(bool done) override;
  void begin_step(trainer::Collective& collective) override;
  [[nodiscard]] Result<trainer::BatchSums> compute(const data::Examples& batch, bool last) override;
  [[nodiscard]] Status finish_reduction() override;
  [[nodiscard]] Status apply(double weight) override;
  void set_rate(double factor) override { rate_ = factor; }
  void discard() override;
  [[nodiscard]] Result<wire::EvalPartial> evaluate(const data::Examples& batch) override;
  [[nodiscard]] std::vector<trainer::StateFile> state_files(Step step) const override;
  [[nodiscard]] Result<Step> load(CheckpointReader& files) override;
  [[nodiscard]] std::vector<std::span<std::byte>> state_parts() override;
  void state_replaced() override;

 private:
  [[nodiscard]] Order order(std::int32_t kind) const;
  void give(const data::Examples& batch, Order& order);
  // Asks, and throws where the program is gone.
  void ask(Order order) const;
  void want_state() const;

  Links links_;
  wire::PhaseStart phase_;
  std::uint32_t rank_ = 0;
  std::uint32_t size_ = 1;
  double rate_ = 1;
  bool has_step_ = false;  // the program did something for the step under way
  bool gone_ = false;      // it failed; nothing more is asked
};

}  // namespace antdt::capi
