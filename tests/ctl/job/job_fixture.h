// A job machine with a journal in memory: 100 records in shards of 10, a global
// batch of 8, workers on one host.
#pragma once

#include <gtest/gtest.h>

#include "ctl/job/job_machine.h"

namespace antdt::ctl {

class JobFixture : public testing::Test {
 protected:
  static Member w(std::uint32_t index, std::uint32_t attempt = 1) {
    return {WorkerId{'w', index}, Attempt{attempt}};
  }
  static JobMachineConfig config() {
    JobMachineConfig c;
    c.job = "test-01";
    c.spec.train_records = 100;
    c.spec.budgets = {{"signal", 9}, {"host", 9}};
    c.control.rules.global_batch = 8;
    c.ledger.train.records = 100;
    c.ledger.train.shard_records = 10;
    return c;
  }

  // A new job, or the next incarnation on what the journal holds.
  void open(const JobMachineConfig& with = config()) {
    auto opened = JobMachine::open(with, std::move(*make_solution("none")), journal);
    ASSERT_TRUE(opened) << opened.error().message;
    machine.emplace(std::move(*opened));
    feed(journal.records.empty() ? job::Input(job::JobCreated{})
                                 : job::Input(job::IncarnationRecovered{}));
  }
  // Everything of the turn is durable.
  job::Effects feed(const job::Input& input) {
    clock.advance(std::chrono::milliseconds(1));
    job::Effects outputs;
    machine->step(input, clock.now(), outputs);
    for (const job::Effect& output : outputs) {
      if (const auto* p = std::get_if<job::PersistRecord>(&output)) {
        journal.records.push_back({std::string(p->kind), p->bytes});
      }
    }
    if (const auto image = machine->image_if_changed()) {
      journal.records.push_back({std::string(kImageRecord), *image});
    }
    saw(outputs);
    return outputs;
  }
  // For tests that keep what they see.
  virtual void saw(const job::Effects&) {}

  template <class T>
  static std::vector<T> all(const job::Effects& outputs) {
    std::vector<T> found;
    for (const job::Effect& o : outputs) {
      if (const T* t = std::get_if<T>(&o)) found.push_back(*t);
    }
    return found;
  }
  template <class T>
  static std::vector<std::pair<Member, T>> sent(const job::Effects& outputs) {
    std::vector<std::pair<Member, T>> found;
    for (const auto& message : all<job::SendToWorker>(outputs)) {
      if (const T* t = std::get_if<T>(&message.body)) found.emplace_back(message.to, *t);
    }
    return found;
  }
  template <class Body>
  job::Effects says(Member member, const Body& body, std::uint64_t seq = 0) {
    return feed(job::WorkerSaid{member, machine->membership().generation(), seq, body});
  }
  static wire::Join join(Generation settled = {}, Step step = {}) {
    wire::Join j;
    j.data.fingerprint = "f";
    j.settled = settled;
    j.step = step;
    return j;
  }
  void host(const std::string& name, std::vector<wire::RunningProcess> running = {}) {
    HostState h;
    h.host = h.name = name;
    h.room = 4;
    feed(job::HostWelcomed{h, std::move(running)});
  }
  void place(std::uint32_t count) {
    host("a");
    lifecycle::WorkersPlaced placed;
    for (std::uint32_t i = 0; i < count; ++i) placed.workers.push_back({w(i).worker, "a", 0});
    feed(placed);
    for (std::uint32_t i = 0; i < count; ++i) feed(lifecycle::WorkerStarted{w(i), 100 + i});
  }

  ManualClock clock;
  shard_server::JournalContent journal;
  std::optional<JobMachine> machine;
};

}  // namespace antdt::ctl
