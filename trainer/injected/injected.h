// What [[inject]] and `antdt inject` do to this process, done: the shell around
// core/drill/injection.h.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/clock.h"
#include "core/drill/injection.h"
#include "core/result.h"
#include "core/wire/drill_messages.h"
#include "trainer/injected/injected_link.h"

namespace antdt::trainer {

// Of the training thread alone, or of a server's: there a batch is a request. Does nothing
// before training_began().
class Injected {
 public:
  // What the job daemon said last; number 0: nothing.
  using Orders = std::function<wire::Injected()>;

  // Says what part of the time this process may run from now on.
  using Throttle = std::function<void(double)>;

  // What the job's configuration does to `self`. An error (kUsage) says what of it cannot be
  // read.
  [[nodiscard]] static Result<Injected> of_job(const Clock& clock, const std::string& config_json,
                                               const drill::Target& self, Orders orders,
                                               Throttle throttle);

  // `rules` are the job's. Those of orders hold beside them, from their arrival on;
  // `self` and `seed` are what they are read with.
  Injected(const Clock& clock, drill::Injection rules, Orders orders = {},
           const drill::Target& self = {}, std::uint64_t seed = 0, Throttle throttle = {});

  // The time of the job's rules begins; only the first call counts.
  void training_began();
  [[nodiscard]] bool training() const { return began_; }

  // After the data of a batch came that were asked for at `began`.
  void after_data(MonoTime began, std::uint64_t step);
  // After the computing of a batch that began at `began`: takes as much longer as
  // the rules say, or dies of them.
  void after_compute(MonoTime began, std::uint64_t step, std::uint64_t samples);
  // For whoever sends to other members or to servers.
  [[nodiscard]] std::shared_ptr<const InjectedLink> link() const { return link_; }

 private:
  struct Running {
    drill::Injection rules;
    MonoTime start{};
    MonoTime asked{};  // up to when a kill would have come
  };
  void begin(Running& running) const;
  void obey();  // the newest order
  void die_if_due(Running& running) const;
  void slow_links();
  void throttle();

  const Clock& clock_;
  Orders orders_;
  drill::Target self_;
  std::uint64_t seed_;
  Throttle say_throttle_;
  double throttled_to_ = 1;
  std::shared_ptr<InjectedLink> link_;
  bool began_ = false;
  Running job_;
  Running ordered_;
  std::uint64_t number_ = 0;  // of the order that ordered_ is
};

}  // namespace antdt::trainer
