// Carries out what the job machine wants in a turn. Journal records, messages and checkpoints to
// store wait for the turn's commit.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ctl/job/job_machine.h"
#include "ctl/lifecycle/process_requests.h"
#include "sim/messages.h"

namespace antdt::sim {

class Daemon;

class DaemonOutputs {
 public:
  explicit DaemonOutputs(Daemon& daemon) : daemon_(daemon) {}

  void perform(ctl::job::Effects& effects);
  // Repeats the requests that agents have not confirmed.
  void repeat_requests();
  void send(const std::string& host, decltype(ToAgent::body) body);

  // While a message of `member` is handled, answers are sent over the host through which it came.
  void handling(Member member, std::string host) { inbound_ = {member, std::move(host)}; }
  void handled() { inbound_.reset(); }

  std::vector<shard_server::JournalEntry> pending;  // entries for the journal
  // Sends the messages and stores the checkpoints that waited for the commit.
  void release();
  [[nodiscard]] const std::optional<ctl::Outcome>& outcome() const { return outcome_; }

 private:
  void on(const ctl::job::PersistRecord& o);
  void on(const ctl::job::SendToWorker& o);
  void on(const ctl::lifecycle::StartWorker& o);
  void on(const ctl::lifecycle::StopWorker& o);
  void on(const ctl::lifecycle::PrepareGang&) {}
  void on(const ctl::job::RememberEntry&) {}  // the simulated job does not need the history
  void on(const ctl::job::StoreCheckpoint& o) { stores_.push_back(o); }
  void on(const ctl::job::FindCheckpoint& o);
  void on(const ctl::job::RemoveUnfinished& o);
  void on(const ctl::job::PublishNote& o);
  void on(const ctl::lifecycle::EndJob& o);
  void store(const ctl::job::StoreCheckpoint& o);
  void sabotage(ctl::job::SendToWorker& message);

  struct Outgoing {
    std::string host;
    ToAgent message;
  };
  Daemon& daemon_;
  ctl::ProcessRequests requests_;
  std::vector<Outgoing> outbox_;
  std::vector<ctl::job::StoreCheckpoint> stores_;
  std::optional<std::pair<Member, std::string>> inbound_;
  std::optional<ctl::Outcome> outcome_;
  bool looking_ = false;  // FindCheckpoint was not answered yet, and is answered once
  std::optional<wire::Grants> granted_;  // for sabotage
};

}  // namespace antdt::sim
