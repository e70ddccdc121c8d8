// Carries out in this process what [[inject]] and `antdt inject` order: the shell around
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

// Used by the training thread, or by a server's thread, where a batch is a request. Does nothing
// before training_began().
class Injected {
 public:
  // The newest order of the job daemon; number 0: there was none.
  using Orders = std::function<wire::Injected()>;

  // Sets the part of the time for which this process may run from now on.
  using Throttle = std::function<void(double)>;

  // The rules of the job's configuration for `self`, whose domain follows from it. The error
  // (kUsage) says what cannot be read.
  [[nodiscard]] static Result<Injected> of_job(const Clock& clock, const std::string& config_json,
                                               const drill::Target& self, Orders orders,
                                               Throttle throttle);

  // `rules` are the job's. Rules of orders apply in addition, from their arrival on; `self` and
  // `seed` are needed to read them.
  Injected(const Clock& clock, drill::Injection rules, Orders orders = {},
           const drill::Target& self = {}, std::uint64_t seed = 0, Throttle throttle = {});

  // The times of the job's rules begin to count; only the first call matters.
  void training_began();
  [[nodiscard]] bool training() const { return began_; }

  // To be called when the data of a batch, requested at `began`, have arrived.
  void after_data(MonoTime began, std::uint64_t step);
  // To be called after a batch that began at `began` was computed: takes as much longer as the
  // rules say, or dies.
  void after_compute(MonoTime began, std::uint64_t step, std::uint64_t samples);
  // For the code that sends to other members or to servers.
  [[nodiscard]] std::shared_ptr<InjectedLink> link() const { return link_; }

 private:
  struct Running {
    drill::Injection rules;
    MonoTime start{};
    MonoTime asked{};  // kills up to this time were checked
  };
  void begin(Running& running) const;
  void obey();  // applies the newest order
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
  std::uint64_t number_ = 0;  // number of the order in ordered_
};

}  // namespace antdt::trainer
