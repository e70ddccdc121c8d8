#include "trainer/tally/ps_tally.h"

#include <algorithm>

#include "core/check.h"

namespace antdt::trainer {
namespace {

class PsTally final : public PsModel {
 public:
  PsTally(std::uint64_t records, std::uint32_t rows_a_record, std::optional<std::uint64_t> poison)
      : records_(records), rows_a_record_(rows_a_record), poison_(poison) {
    wire::PsTable table;
    table.name = "tally";
    table.rule = "sum";
    table.init = "zero";
    tables_.push_back(std::move(table));
  }

  [[nodiscard]] const std::vector<wire::PsTable>& tables() const override { return tables_; }
  [[nodiscard]] std::vector<ps::TableGradient> first_values() const override { return {}; }

  // A number that is not a record has no row; compute() reports what is wrong with it.
  [[nodiscard]] std::vector<ps::TableKeys> rows_of(const data::Examples& batch) const override {
    std::vector<std::uint64_t> keys;
    keys.reserve(batch.ids.size() * rows_a_record_);
    for (const std::int64_t id : batch.ids) {
      const auto record = static_cast<std::uint64_t>(id);
      if (record >= records_) continue;
      for (std::uint32_t i = 0; i < rows_a_record_; ++i) keys.push_back(first_row(record) + i);
    }
    std::ranges::sort(keys);
    const auto repeated = std::ranges::unique(keys);
    keys.erase(repeated.begin(), repeated.end());
    return {{0, std::move(keys)}};
  }

  [[nodiscard]] Result<Computed> compute(
      const data::Examples& batch, const std::vector<ps::TableKeys>& rows,
      const std::vector<std::vector<float>>& /*values*/) override {
    ps::Gradient ones;
    if (!rows.empty()) ones.keys = rows.front().keys;
    ones.values.resize(ones.keys.size());
    for (const std::int64_t id : batch.ids) ANTDT_RETURN_IF_ERROR(count(id, ones));
    Computed computed{{}, {static_cast<double>(batch.count), 0}};
    computed.gradients.push_back({0, std::move(ones)});
    return computed;
  }

  [[nodiscard]] Result<wire::EvalPartial> evaluate(
      const data::Examples& batch, const std::vector<ps::TableKeys>& /*rows*/,
      const std::vector<std::vector<float>>& /*values*/) override {
    wire::EvalPartial partial;
    partial.records = batch.count;
    return partial;
  }

 private:
  [[nodiscard]] std::uint64_t first_row(std::uint64_t record) const {
    return record * rows_a_record_;
  }

  [[nodiscard]] Status count(std::int64_t id, ps::Gradient& ones) const {
    const auto record = static_cast<std::uint64_t>(id);
    if (record >= records_) {
      return fail(ErrorKind::kInternal, "record {} of {} cannot be counted", id, records_);
    }
    ANTDT_CHECK(record != poison_, "record {} is poison", record);
    const auto found = std::ranges::lower_bound(ones.keys, first_row(record));
    const auto first = static_cast<std::size_t>(found - ones.keys.begin());
    // Keys rise, so if the last row is in its place, all are there.
    const std::size_t last = first + rows_a_record_ - 1;
    if (last >= ones.keys.size() || *found != first_row(record) ||
        ones.keys[last] != first_row(record) + rows_a_record_ - 1) {
      return fail(ErrorKind::kInternal, "record {} has no row among those of its batch", record);
    }
    for (std::size_t row = first; row <= last; ++row) ++ones.values[row];
    return {};
  }

  std::uint64_t records_;
  std::uint32_t rows_a_record_;
  std::optional<std::uint64_t> poison_;
  std::vector<wire::PsTable> tables_;
};

}  // namespace

Result<std::unique_ptr<PsModel>> make_tally_ps_model(const data::DataShape& shape,
                                                     std::uint32_t parameters_a_record,
                                                     std::optional<std::uint64_t> poison) {
  ANTDT_CHECK(parameters_a_record > 0, "a record without parameters cannot be counted");
  if (shape.id_width != 1 || shape.dense_width != 0 || shape.id_rows == 0) {
    return fail(ErrorKind::kUsage,
                "trainer.model '{}' counts records that are their own number: it needs "
                "data.format = \"index\"",
                parameters_a_record == 1 ? "tally" : "tally3");
  }
  return std::make_unique<PsTally>(shape.id_rows, parameters_a_record, poison);
}

}  // namespace antdt::trainer
