// What domains send one another under Gaia, in the model of a simulated worker.
//
// An update has some pieces, as a real one has elements. A message carries those that are
// significant, which its number and the step decide, or all. A record counts as trained in a
// replica when all pieces of its update are there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/ids.h"
#include "sim/model.h"

namespace antdt::sim {

struct DomainMessage {
  struct Change {
    std::uint64_t number = 0;
    std::shared_ptr<const Update> update;
    Pieces pieces{};
  };
  std::string domain;
  bool whole = false;
  std::vector<Change> changes;
};

// Adds an update of the own domain, of which the others know nothing.
void add_update(Model& model, std::string_view own, std::uint64_t number,
                const std::shared_ptr<const Update>& update);
// The message of the own domain before the step after `step`; what is in it is sent.
[[nodiscard]] DomainMessage send_updates(Model& model, std::string_view own, Step step, bool whole);
// Adds what another domain has sent. Appends the records that the replica gains by it.
void take_updates(Model& model, const DomainMessage& message, std::vector<Record>& gained);
// Takes back what came in part from domains other than these; returns of how many updates.
std::size_t withdraw_others(Model& model, const std::vector<std::string>& domains);
// A piece of an update is in the replica twice.
[[nodiscard]] bool has_a_piece_twice(const Model& model);

}  // namespace antdt::sim
