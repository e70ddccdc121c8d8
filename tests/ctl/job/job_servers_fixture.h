// A job with two parameter servers and two workers; the test sends the messages of all.
#pragma once

#include <csignal>

#include "core/wire/packet.h"
#include "tests/ctl/job/job_fixture.h"

namespace antdt::ctl {

class JobServersTest : public JobFixture {
 protected:
  static Member s(std::uint32_t index, std::uint32_t attempt = 1) {
    return {WorkerId{'s', index}, Attempt{attempt}};
  }
  static JobMachineConfig with_servers() {
    JobMachineConfig c = config();
    c.spec.servers = 2;
    c.spec.sync = SyncStrategy::kPsBsp;
    c.spec.checkpoint_every = std::chrono::seconds(5);
    c.ledger.run = "/run";
    return c;
  }
  void saw(const job::Effects& outputs) override {
    for (const auto& [to, serve] : sent<wire::PsServe>(outputs)) {
      number[to] = std::max(number[to], serve.number);
    }
    for (const auto& [to, start] : sent<wire::PhaseStart>(outputs)) phase[to] = start.phase;
    for (const auto& end : all<lifecycle::EndJob>(outputs)) outcome = end.outcome;
  }
  // Sends a message of the present generation.
  template <class Body>
  job::Effects says(Member member, const Body& body, std::uint64_t n = 0) {
    return feed(job::WorkerSaid{member, machine->generation(), n, body});
  }
  job::Effects joins(Member m, const wire::PsSaid& said = {}) {
    wire::Join j = join();
    j.said = said;
    if (m.worker.role == 's') {
      j.endpoint = "/run/" + to_string(m.worker);
      j.data = {};  // the workers read no data
    }
    j.key = "key of " + to_string(m.worker);
    return says(m, j);
  }
  // Starts the processes on one host; none has joined.
  void begin(const JobMachineConfig& config, const std::vector<Member>& members) {
    open(config);
    host("a");
    lifecycle::WorkersPlaced placed;
    for (const Member m : members) placed.workers.push_back({m.worker, "a", 0});
    feed(placed);
    for (const Member m : members) feed(lifecycle::WorkerStarted{m, 1});
  }
  void start(const JobMachineConfig& config = with_servers()) {
    const std::vector<Member> all = {w(0), w(1), s(0), s(1)};
    begin(config, all);
    for (const Member m : all) joins(m);
    serve({s(0), s(1)});
  }
  void serve(const std::vector<Member>& servers, std::vector<wire::PsPlaces> left = {}) {
    for (const Member m : servers) {
      says(m,
           wire::PsServing{number[m], m.worker.index == 0 ? left : std::vector<wire::PsPlaces>{}});
    }
  }
  // Returns how many of the wanted records the worker is granted; it has trained up to `place`.
  std::uint64_t fetch(Member m, std::uint64_t place, std::uint64_t want) {
    wire::Fetch f;
    f.phase = phase[m];
    f.place = place;
    f.want = want;
    const auto grants = sent<wire::Grants>(says(m, f, ++seq[m]));
    if (grants.empty()) return 0;
    std::uint64_t records = 0;
    for (const wire::Piece& p : grants.back().second.pieces) records += p.to - p.from;
    return records;
  }
  // Both workers train until no record is left; returns how many records that was.
  std::uint64_t train_the_rest() {
    std::map<Member, std::uint64_t> at;
    for (int turn = 0; turn < 50; ++turn) {
      for (const Member m : {w(0), w(1)}) at[m] += fetch(m, at[m], 20);
    }
    return at[w(0)] + at[w(1)];
  }
  void exits(Member m, int signal) {
    wire::ProcessExited exit;
    exit.signal = signal;
    exit.code = signal == 0 ? 0 : -1;
    feed(lifecycle::WorkerExited{m, exit});
  }
  static wire::PsPlaces places(Member m, std::uint64_t in_phase, std::uint64_t to) {
    wire::PsPlaces p{m.worker, m.attempt, in_phase, {}};
    if (to > 0) p.applied.push_back({0, to});
    return p;
  }
  void started_again(Member m) {
    clock.advance(std::chrono::seconds(5));
    feed(job::TimePassed{});
    feed(lifecycle::WorkerStarted{m, 2});
    joins(m);
  }
  void end_of(std::uint64_t in_phase, const std::vector<Member>& workers) {
    wire::Progress p;
    p.phase = in_phase;
    p.done = true;
    for (const Member m : workers) says(m, p);
  }
  job::Effects order_checkpoint() {
    clock.advance(std::chrono::seconds(6));
    return feed(job::TimePassed{});
  }

  std::map<Member, std::uint64_t> number, seq, phase;
  std::optional<Outcome> outcome;
};

}  // namespace antdt::ctl
