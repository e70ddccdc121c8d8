// An engine's part in the exchange of updates between domains (trainer.sync = "gaia").
//
// The engine owns the parameters, which are one array of floats in the host's memory, and tells
// this object what happens to them. What is kept beside them is sync::gaia::DomainReplica: memory
// for the parameters three times more (what other domains know, and that and the values from before
// the exchange), and twice more for each other domain (its part, and that from before). Once a
// replica of another domain has visited, it is memory for one more. Messages have memory for the
// longest so far, which are whole: the own one and those of all domains.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "core/result.h"
#include "core/wire/worker_messages.h"
#include "trainer/loop/domains/domain_links.h"
#include "trainer/sync/gaia/domain_replica.h"

namespace antdt::trainer {

class DomainExchange {
 public:
  // Whether an element may be sent now if it changed. All members of a domain say the same.
  using Chooses = std::function<bool(std::size_t element)>;

  // Before a step: sends what is significant, or everything, and adds what other domains sent. With
  // `chooses`, what that says is significant, in place of the threshold. kCorrupt if a message is
  // no message of updates of these parameters; other errors are the collectives'. After an error
  // discarded() is needed.
  [[nodiscard]] Status exchange(const DomainLinks& links, const UpdateExchange& about,
                                std::span<float> values, const Chooses& chooses = {});

  // The step is applied to the values; it is not, and what was before its exchange comes back; the
  // values were replaced by those that all members have.
  void applied() {
    replica_.applied();
    guest_.clear();
  }
  void discarded(std::span<float> values) {
    replica_.restore(values);
    guest_.clear();
  }
  void replaced() {
    replica_.settle();
    guest_.clear();
  }

  // In a step with a visit: the values from before its exchange, of this domain and of the one
  // whose copy visits. Otherwise there is no guest.
  [[nodiscard]] bool has_guest() const { return !guest_.empty(); }
  [[nodiscard]] std::span<const float> guest() const { return guest_; }
  [[nodiscard]] std::span<const float> own_before() const { return replica_.before(); }

  // What else becomes equal in a consolidation.
  struct AlsoEqual {
    std::span<const std::span<float>> means = {};  // become their means, changed at the end only
    std::span<double> doubles = {};  // become their means; after an error they may be anything
  };
  // Between two steps: takes back what is here in part of domains that take no part, exchanges
  // whole messages, and makes all else equal; then nothing is pending. Afterwards the values, too,
  // have the same bits on all members if they are among `means`, or if sums of them are exact.
  // After an error the values and means are what they were.
  [[nodiscard]] Status consolidate(const DomainLinks& links, std::span<float> values,
                                   const AlsoEqual& also);

  [[nodiscard]] const wire::UpdateSums& sums() const { return sums_; }

 private:
  [[nodiscard]] Status swap_messages(const DomainLinks& links, const UpdateExchange& about,
                                     std::span<float> values, std::span<const float> offered);
  [[nodiscard]] Status make_equal(const DomainLinks& links, std::span<float> values,
                                  const AlsoEqual& also);

  sync::gaia::DomainReplica replica_;
  std::vector<float> offered_;
  std::vector<float> guest_;
  std::vector<std::byte> own_;
  DomainMessages messages_;
  wire::UpdateSums sums_;
};

}  // namespace antdt::trainer
