// What members of a group average, and how their own updates are scaled: what the engine does under
// ds-sync, and what was tried beside that.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/names.h"
#include "core/result.h"
#include "trainer/data/dataset.h"
#include "trainer/loop/trainer_config.h"

namespace antdt::bench::replicas {

enum class Rule : std::uint8_t {
  kEngine,       // what the engine does (Engine::mix)
  kParameters,   // parameters only, and each optimizer takes its gradients for those of all records
  kMoments,      // the optimizer's state, too
  kChangedRows,  // parameters; of a table's row all that members changed, over those who did
  kScaledRows,   // parameters; each update of a table's row counts as often as there are members
};
constexpr auto names_of(Rule) {
  return names("engine", "parameters", "moments", "changed rows", "scaled rows");
}

// A member's parameters, and then what its optimizer keeps.
using Arrays = std::vector<std::span<float>>;

// Where the rows of the model's embedding table are among its parameters; rows 0: it has none.
struct Table {
  std::size_t first = 0, rows = 0, width = 0;
};
[[nodiscard]] Result<Table> table_of(const trainer::TrainerConfig& config,
                                     const data::DataShape& shape);

// The group's members get the same values. `mixed`: each one's parameters after it last mixed.
// Not for kEngine.
void mix_by(Rule rule, const Table& table, std::span<const Arrays> group,
            std::span<const std::span<const float>> mixed);

// kScaledRows: what changed the table's rows since `before` counts `factor` times.
void scale_rows(const Table& table, std::span<const float> before, float factor,
                std::span<float> parameters);

}  // namespace antdt::bench::replicas
