// A Lifecycle with two workers on two hosts, and helpers that lead to the situation of a test.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <string>
#include <tuple>
#include <vector>

#include "ctl/lifecycle/lifecycle.h"

namespace antdt::ctl {

using std::chrono::minutes;
using std::chrono::seconds;

inline Member w(std::uint32_t index, std::uint32_t attempt = 1) {
  return {WorkerId{'w', index}, Attempt{attempt}};
}
inline wire::ProcessExited code(int c) { return {c, 0, "", "", ""}; }
inline wire::ProcessExited killed(int s) { return {-1, s, "", "", ""}; }

class LifecycleTest : public testing::Test {
 protected:
  using Effects = lifecycle::Effects;

  template <class T>
  static std::vector<T> all(const Effects& effects) {
    std::vector<T> found;
    for (const auto& e : effects) {
      if (const T* t = std::get_if<T>(&e)) found.push_back(*t);
    }
    return found;
  }
  // The job daemon is started again on what it wrote.
  void next_incarnation(const std::vector<Member>& running) {
    next_incarnation(life.image(), running);
  }
  void next_incarnation(const LifecycleImage& image, const std::vector<Member>& running) {
    Lifecycle next(spec());
    next.restore(image, running);
    life = std::move(next);
  }
  // A job that tolerates no failure.
  static JobSpec spec() {
    JobSpec s;
    s.epochs = 2;
    s.train_records = 800;
    s.eval_records = 200;
    s.checkpoint_every = seconds(60);
    return s;
  }
  static JobSpec bears(std::map<std::string, std::uint32_t> budgets) {
    JobSpec s = spec();
    s.budgets = std::move(budgets);
    return s;
  }
  void use(JobSpec s) { life = Lifecycle(std::move(s)); }
  static HostState host(const std::string& name, std::uint32_t order, std::uint32_t room = 2) {
    HostState h;
    h.host = h.name = name;
    h.order = order;
    h.room = room;
    return h;
  }

  Effects step(const lifecycle::Input& event) {
    Effects effects;
    life.step(event, clock.now(), effects);
    return effects;
  }
  void hosts(std::uint32_t room = 2) {
    step(lifecycle::HostCameUp{host("a", 0, room)});
    step(lifecycle::HostCameUp{host("b", 1, room)});
  }
  // w0 and w2 are on host a, w1 and w3 on b.
  void start(std::uint32_t count = 2) {
    if (life.hosts().all().empty()) hosts();
    lifecycle::WorkersPlaced placed;
    for (std::uint32_t i = 0; i < count; ++i) {
      placed.workers.push_back({w(i).worker, i % 2 == 0 ? "a" : "b", i % 2});
    }
    step(placed);
    for (std::uint32_t i = 0; i < count; ++i) comes_up(w(i));
  }
  Effects comes_up(Member member) {
    step(lifecycle::WorkerStarted{member, 100 + member.worker.index});
    return step(lifecycle::WorkerJoined{member, true});
  }
  Effects settle(const std::vector<Member>& members) {
    generation_ = generation_.next();
    return step(lifecycle::GenerationSettled{generation_, members});
  }
  void train(std::uint32_t count = 2) {
    start(count);
    std::vector<Member> members;
    for (std::uint32_t i = 0; i < count; ++i) members.push_back(w(i));
    settle(members);
    step(lifecycle::StepCompleted{Step{1}});
  }
  Effects train_done(std::uint64_t phase) {
    step(lifecycle::WorkerDone{w(0), phase});
    step(lifecycle::WorkerDone{w(1), phase});
    return step(lifecycle::PhaseDrained{phase});
  }
  [[nodiscard]] std::ptrdiff_t running() const {
    return std::ranges::count_if(life.workers(), &WorkerProcess::running);
  }
  std::string state_of(WorkerId worker) {
    return std::string(name_of(process_state(life.find(worker)->state)));
  }
  const FailureRecord& failure() { return life.failures().back(); }
  std::string class_of(const FailureRecord& f) {
    return std::string(name_of(static_cast<FailureClass>(f.cls)));
  }

  ManualClock clock;
  Generation generation_;
  Lifecycle life{spec()};
};

}  // namespace antdt::ctl
