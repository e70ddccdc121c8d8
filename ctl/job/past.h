// The past of a job: actions, failures whose incident is over, epochs before the last two. Each is
// written once, as a journal record. Only the newest actions and failures are kept. Besides, what
// each worker did, of which the newest record counts. Pure; durable by its records and its section
// of a snapshot.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/result.h"
#include "ctl/job/job_image.h"
#include "ctl/job/report.h"
#include "shard_server/journal/journal.h"

namespace antdt::ctl {

class Past {
 public:
  // How many of the newest are kept.
  static constexpr std::size_t kMostActions = 10'000;
  static constexpr std::size_t kMostFailures = 2'000;

  // Replays an entry of the journal, in order. Returns whether the entry belonged to the past.
  // `image`: what older journals keep in their image record, which must be written again.
  [[nodiscard]] Result<bool> replay(const shard_server::JournalEntry& entry);
  void take_from(JobImage& image);

  // Returns the action's number, from 1.
  std::uint64_t add(ActionReport action);
  void add(FailureRecord failure);
  void add(const ImageEpoch& epoch);
  void keep(ImageWorker worker);
  // Training goes on from a checkpoint, so only this many epochs are past.
  void keep_epochs(std::size_t count);

  // Null if the action is not kept any more, or never existed.
  [[nodiscard]] const ActionReport* action(std::uint64_t number) const;
  [[nodiscard]] const std::deque<ActionReport>& actions() const { return actions_; }
  [[nodiscard]] const std::deque<FailureRecord>& failures() const { return failures_; }
  // How many there were before those that are kept.
  [[nodiscard]] std::uint64_t actions_before() const;
  [[nodiscard]] std::uint64_t failures_before() const { return failures_before_; }
  [[nodiscard]] const std::vector<ImageEpoch>& epochs() const { return epochs_; }
  [[nodiscard]] const std::map<WorkerId, ImageWorker>& workers() const { return workers_; }

  // What is new since the last call: kind and bytes of each record.
  [[nodiscard]] std::vector<std::pair<std::string_view, std::string>> take_records();
  [[nodiscard]] shard_server::JournalEntry section() const;

 private:
  void bound();

  std::deque<ActionReport> actions_;
  std::uint64_t next_number_ = 1;
  std::deque<FailureRecord> failures_;
  std::uint64_t failures_before_ = 0;
  std::vector<ImageEpoch> epochs_;
  std::map<WorkerId, ImageWorker> workers_;
  std::vector<std::pair<std::string_view, std::string>> records_;
};

}  // namespace antdt::ctl
