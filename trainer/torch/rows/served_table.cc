#include "trainer/torch/rows/served_table.h"

#include <algorithm>
#include <utility>

namespace antdt::trainer {
namespace {

wire::PsTable wire_table_of(const TrainerConfig& config, const kit::TableColumns& columns) {
  wire::PsTable table;
  table.name = columns.name;
  table.width = static_cast<std::uint32_t>(columns.width);
  table.rule = config.optimizer;
  table.learning_rate = config.learning_rate;
  table.weight_decay = config.weight_decay;
  table.init = columns.deviation == 0 ? "zero" : "normal";
  table.init_scale = columns.deviation;
  return table;
}

}  // namespace

ServedTable::ServedTable(const TrainerConfig& config, const data::DataShape& shape,
                         const Model& model, torch::Tensor table)
    : shape_(shape),
      table_(std::move(table)),
      width_(static_cast<std::size_t>(table_.size(1))),
      columns_(model.table_columns()) {
  for (const kit::TableColumns& columns : columns_)
    tables_.push_back(wire_table_of(config, columns));
  table_.mutable_grad() = torch::zeros_like(table_);
}

std::vector<ps::TableKeys> ServedTable::rows_of(const data::Examples& batch) const {
  std::vector<ps::TableKeys> rows;
  const std::vector<std::uint64_t> keys = unique_keys(ids_of(batch, shape_));
  for (std::uint32_t table = 0; table < columns_.size(); ++table) rows.push_back({table, keys});
  return rows;
}

Status ServedTable::put(std::vector<ps::TableKeys> rows,
                        const std::vector<std::vector<float>>& values) {
  const auto fits = [&](std::size_t i) {
    return rows[i].table == i && rows[i].keys == rows.front().keys &&
           values[i].size() == rows[i].keys.size() * columns_[i].width;
  };
  bool all_fit = rows.size() == columns_.size() && values.size() == rows.size();
  for (std::size_t i = 0; all_fit && i < rows.size(); ++i) all_fit = fits(i);
  if (!all_fit) {
    return fail(ErrorKind::kInternal, "the rows of {} tables are not those of this model's {}",
                rows.size(), columns_.size());
  }
  rows_ = std::move(rows);
  const auto count = static_cast<std::int64_t>(rows_.front().keys.size());
  const torch::NoGradGuard no_gradients;
  table_.set_data(torch::empty({count, static_cast<std::int64_t>(width_)}));
  table_.mutable_grad() = torch::zeros({count, static_cast<std::int64_t>(width_)});
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const kit::TableColumns& columns = columns_[i];
    float* to = table_.data_ptr<float>() + columns.first;
    for (auto from = values[i].begin(); from != values[i].end();
         from += columns.width, to += width_) {
      std::copy_n(from, columns.width, to);
    }
  }
  return {};
}

Result<Batch> ServedTable::batch_over(const data::Examples& batch) {
  Batch tensors = tensors_over(batch, shape_);
  if (rows_.empty()) return fail(ErrorKind::kInternal, "a batch whose rows were not pulled");
  ANTDT_RETURN_IF_ERROR(positions_of_.find(rows_.front().keys, ids_of(batch, shape_), positions_));
  tensors.ids = torch::from_blob(positions_.data(), tensors.ids.sizes(), torch::kInt64);
  if (!tensors.columns.empty()) tensors.columns["ids"] = tensors.ids;
  return tensors;
}

std::vector<ps::TableGradient> ServedTable::gradients() const {
  std::vector<ps::TableGradient> all;
  const torch::Tensor& gradient = table_.grad();
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const kit::TableColumns& columns = columns_[i];
    std::vector<float> values(static_cast<std::size_t>(gradient.size(0)) * columns.width);
    const float* from = gradient.data_ptr<float>() + columns.first;
    for (auto to = values.begin(); to != values.end(); to += columns.width, from += width_) {
      std::copy_n(from, columns.width, to);
    }
    all.push_back({rows_[i].table, {rows_[i].keys, std::move(values)}});
  }
  return all;
}

}  // namespace antdt::trainer
