// A program that is a member of a job: what an antdt_job stands for.
//
//   opened ──start()──> its driver lives in a thread ──its end──> the order to leave is offered
//      └───────────────────────────┴── destroyed: whatever it does is ended
#pragma once

#include <atomic>
#include <memory>
#include <thread>

#include "core/clock.h"
#include "core/result.h"
#include "trainer/c_api/data_progress.h"
#include "trainer/c_api/program/evaluations.h"
#include "trainer/c_api/program/exchange.h"
#include "trainer/c_api/program/reductions.h"
#include "trainer/c_api/program/skipped.h"
#include "trainer/c_api/program/state_parts.h"
#include "trainer/c_api/program/upcoming.h"
#include "trainer/c_api/program_engine.h"
#include "trainer/c_api/settings.h"
#include "trainer/loop/member_driver.h"

namespace antdt::capi {

class Member {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Member>> open(const Settings& settings);
  ~Member();
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;

  // Joins; once, whoever calls. The parts of the state are registered.
  void start();
  [[nodiscard]] bool started() const { return started_; }
  // Asks to leave at the end of the step; async-signal-safe.
  void leave() { stop_ = true; }
  // The training ends before the next step of this member.
  void end_training(std::string reason) { end_of_training_.say(std::move(reason)); }
  [[nodiscard]] bool generation_is_over() const { return guard_.over(); }

  [[nodiscard]] bool in_job() const { return in_job_; }
  [[nodiscard]] const client::Client& client() const { return *client_; }
  [[nodiscard]] Exchange& exchange() { return exchange_; }
  [[nodiscard]] Reductions& reductions() { return reductions_; }
  [[nodiscard]] Upcoming& upcoming() { return upcoming_; }
  [[nodiscard]] StateParts& state() { return state_; }
  [[nodiscard]] Evaluations& evaluations() { return evaluations_; }
  [[nodiscard]] Skipped& skipped() { return skipped_; }

 private:
  Member(const Settings& settings, Connection connection, trainer::Injected injected,
         trainer::CollectiveFactory make_collective);
  [[nodiscard]] trainer::MemberDriver::Parts parts(const Settings& settings,
                                                   trainer::CollectiveFactory make_collective);
  void live();
  [[nodiscard]] Result<int> run();

  const bool in_job_;
  const std::unique_ptr<client::Client> client_;
  OpenClient open_;  // its data may be opened after it is
  const trainer::TrainerConfig config_;
  const wire::DataIdentity data_;
  const std::unique_ptr<const SteadyClock> clock_;
  trainer::TimeAccount account_;
  std::atomic<bool> stop_ = false;
  std::atomic<bool> started_ = false;
  trainer::EndOfTraining end_of_training_;
  Exchange exchange_;
  Reductions reductions_;
  Upcoming upcoming_;
  StateParts state_;
  Evaluations evaluations_;
  Skipped skipped_;
  RecordNumbers numbers_{upcoming_};
  trainer::GenerationGuard guard_;
  trainer::Injected injected_;
  data::Prefetcher prefetcher_;
  ProgramEngine engine_;
  std::unique_ptr<trainer::MemberDriver> driver_;
  std::mutex starting_;
  std::thread thread_;
};

}  // namespace antdt::capi
