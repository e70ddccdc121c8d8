// The members of a job without the job: engines and a collective as workers have them, in one
// process.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "bench/replicas/rules.h"
#include "bench/replicas/task.h"
#include "core/result.h"
#include "shard_server/accounts/evaluation.h"
#include "trainer/loop/engine.h"
#include "trainer/loop/member_groups.h"
#include "trainer/sync/groups.h"

namespace antdt::bench::replicas {

class Members {
 public:
  // As many as the task says, connected over tcp. kUsage if the model cannot be made.
  [[nodiscard]] static Result<std::unique_ptr<Members>> make(const Task& task, std::uint64_t seed,
                                                             Rule rule);

  // What precedes a step: each of these groups averages what the rule says.
  [[nodiscard]] Status mix(const sync::Groups& groups);
  // A step: each member computes the gradient of its own share, by which its own replica is
  // updated, or the sum of all, by which all are. Returns the mean loss of a record.
  [[nodiscard]] Result<double> train_each(std::span<const data::Examples> shares);
  [[nodiscard]] Result<double> train_together(std::span<const data::Examples> shares);

  // How far the replicas x_i are from their mean m: the root of the mean over members of
  // |x_i - m|^2, divided by |m|.
  [[nodiscard]] double consensus_error();
  // Of the mean of all replicas.
  [[nodiscard]] Result<shard_server::EvalMetrics> evaluate();

 private:
  Members(const Task& task, Rule rule) : task_(task), rule_(rule) {}
  [[nodiscard]] Status connect();
  // Each member at once, in a thread of its own.
  [[nodiscard]] Status in_all(const std::function<Status(std::uint32_t rank)>& body);
  [[nodiscard]] std::vector<Arrays> arrays_of(const std::vector<std::uint32_t>& ranks);
  [[nodiscard]] std::vector<float> mean_of_all();

  const Task& task_;
  const Rule rule_;
  Table table_;
  // alone_: that of a member which is told of no other
  std::unique_ptr<trainer::Collective> alone_;
  std::vector<std::unique_ptr<trainer::Collective>> collectives_;
  std::vector<trainer::MemberGroups> groups_;  // destroyed before those
  std::vector<std::unique_ptr<trainer::Engine>> engines_;
  std::vector<std::vector<float>> mixed_;  // parameters after the last mix; by rank
};

}  // namespace antdt::bench::replicas
