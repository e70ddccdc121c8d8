#include "bench/replicas/rules.h"

#include <algorithm>

#include "trainer/torch/models/model.h"
#include "trainer/torch/parameters.h"

namespace antdt::bench::replicas {
namespace {

void average(std::span<const Arrays> group, std::size_t array) {
  std::vector<float> mean(group[0][array].size());
  for (const Arrays& member : group) {
    for (std::size_t k = 0; k < mean.size(); ++k) mean[k] += member[array][k];
  }
  for (float& x : mean) x /= static_cast<float>(group.size());
  for (const Arrays& member : group) std::ranges::copy(mean, member[array].begin());
}

// The mean from before, plus the sum of all changes divided by how many changed the row.
void average_changes(const Table& table, std::span<const Arrays> group,
                     std::span<const std::span<const float>> mixed) {
  for (std::size_t row = 0; row < table.rows; ++row) {
    const std::size_t begin = table.first + row * table.width;
    std::vector<float> before(table.width), changes(table.width);
    float changed = 0;
    for (std::size_t i = 0; i < group.size(); ++i) {
      const auto now = group[i][0].subspan(begin, table.width);
      const auto was = mixed[i].subspan(begin, table.width);
      if (!std::ranges::equal(now, was)) ++changed;
      for (std::size_t k = 0; k < table.width; ++k) {
        before[k] += was[k] / static_cast<float>(group.size());
        changes[k] += now[k] - was[k];
      }
    }
    for (std::size_t k = 0; k < table.width; ++k) {
      const float change = changed > 0 ? changes[k] / changed : 0;
      for (const Arrays& member : group) member[0][begin + k] = before[k] + change;
    }
  }
}

}  // namespace

Result<Table> table_of(const trainer::TrainerConfig& config, const data::DataShape& shape) {
  ANTDT_TRY(const auto model, trainer::make_model(config, shape));
  ANTDT_TRY(auto trained, trainer::FlatParameters::trained_of(*model));
  const trainer::FlatParameters parameters(std::move(trained));
  const auto place = parameters.place_of(model->table_name());
  if (!place) return Table{};
  const auto& entry = parameters.entries()[*place];
  const auto width = static_cast<std::size_t>(entry.parameter.size(1));
  return Table{entry.first, entry.count / width, width};
}

void mix_by(Rule rule, const Table& table, std::span<const Arrays> group,
            std::span<const std::span<const float>> mixed) {
  std::vector<std::vector<float>> rows;  // of the members, before the mean is taken
  if (rule == Rule::kChangedRows) {
    for (const Arrays& member : group) {
      const auto of_table = member[0].subspan(table.first, table.rows * table.width);
      rows.emplace_back(of_table.begin(), of_table.end());
    }
  }
  const std::size_t arrays = rule == Rule::kMoments ? group[0].size() : 1;
  for (std::size_t array = 0; array < arrays; ++array) average(group, array);
  if (rule != Rule::kChangedRows) return;
  for (std::size_t i = 0; i < group.size(); ++i) {
    std::ranges::copy(rows[i], group[i][0].begin() + static_cast<std::ptrdiff_t>(table.first));
  }
  average_changes(table, group, mixed);
}

void scale_rows(const Table& table, std::span<const float> before, float factor,
                std::span<float> parameters) {
  for (std::size_t k = table.first; k < table.first + table.rows * table.width; ++k) {
    parameters[k] = before[k] + factor * (parameters[k] - before[k]);
  }
}

}  // namespace antdt::bench::replicas
