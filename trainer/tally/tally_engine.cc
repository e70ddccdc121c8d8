#include "trainer/tally/tally_engine.h"

#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "core/checkpoint_file.h"
#include "core/fs.h"
#include "core/json_integer.h"

namespace antdt::trainer {
namespace {

static_assert(std::endian::native == std::endian::little, "tally.f32 is written as it lies");

using Json = nlohmann::json;

// A step touches the records of a few shards, in any order within them. So it is
// summed in blocks, and blocks that no member touched are left out.
constexpr std::size_t kBlock = 4096;

class TallyEngine final : public Engine {
 public:
  TallyEngine(std::size_t records, std::optional<std::uint64_t> poison)
      : counts_(records),
        step_(records),
        touched_((records + kBlock - 1) / kBlock),
        poison_(poison) {}

  void begin_step(Collective& collective) override { collective_ = &collective; }

  [[nodiscard]] Result<BatchSums> compute(const data::Examples& batch, bool /*last*/) override {
    for (const std::int64_t id : batch.ids) {
      const auto record = static_cast<std::size_t>(id);
      if (record >= step_.size()) {
        return fail(ErrorKind::kInternal, "record {} of {} cannot be counted", id, step_.size());
      }
      ANTDT_CHECK(record != poison_, "record {} is poison", record);
      ++step_[record];
      touched_[record / kBlock] = kTouched;
    }
    return BatchSums{static_cast<double>(batch.count), 0};
  }

  [[nodiscard]] Status finish_reduction() override {
    ANTDT_RETURN_IF_ERROR(agree_on_blocks());
    packed_.clear();
    for_each_touched([&](std::size_t from, std::size_t to) {
      packed_.insert(packed_.end(), step_.begin() + from, step_.begin() + to);
    });
    if (packed_.empty()) return {};
    ANTDT_RETURN_IF_ERROR(collective_->allreduce_sum(packed_));
    const float* next = packed_.data();
    for_each_touched([&](std::size_t from, std::size_t to) {
      std::copy_n(next, to - from, step_.data() + from);
      next += to - from;
    });
    return {};
  }

  void apply(double /*weight*/) override {
    for_each_touched([&](std::size_t from, std::size_t to) {
      for (std::size_t i = from; i < to; ++i) counts_[i] += step_[i];
    });
    discard();
  }

  void discard() override {
    for_each_touched([&](std::size_t from, std::size_t to) {
      std::fill(step_.data() + from, step_.data() + to, 0.0F);
    });
    std::fill(touched_.begin(), touched_.end(), std::byte{0});
  }

  [[nodiscard]] Result<wire::EvalPartial> evaluate(const data::Examples& batch) override {
    wire::EvalPartial partial;
    partial.records = batch.count;
    return partial;
  }

  [[nodiscard]] std::uint64_t state_hash(Step step) const override {
    return XXH3_64bits_withSeed(counts_.data(), counts_.size() * sizeof(float), step.value);
  }

  [[nodiscard]] Result<std::vector<wire::CheckpointFile>> save(const std::string& directory,
                                                               Step step) const override {
    const std::string_view bytes(reinterpret_cast<const char*>(counts_.data()),
                                 counts_.size() * sizeof(float));
    ANTDT_TRY(auto counts, write_checkpoint_file(directory, kTallyFile, bytes));
    ANTDT_TRY(auto description,
              write_checkpoint_file(directory, kTallyDescription, describe(step).dump(1)));
    return std::vector<wire::CheckpointFile>{std::move(counts), std::move(description)};
  }

  [[nodiscard]] Result<Step> load(const std::string& directory) override {
    ANTDT_TRY(const Step step, load_step(directory + "/" + kTallyDescription));
    const std::string path = directory + "/" + kTallyFile;
    ANTDT_TRY(const std::string bytes, read_file(path));
    if (bytes.size() != counts_.size() * sizeof(float)) {
      return fail(ErrorKind::kCorrupt, "{} has {} bytes; the counts of {} records have {}", path,
                  bytes.size(), counts_.size(), counts_.size() * sizeof(float));
    }
    std::memcpy(counts_.data(), bytes.data(), bytes.size());
    discard();
    return step;
  }

  [[nodiscard]] std::vector<std::span<std::byte>> state_parts() override {
    return {std::as_writable_bytes(std::span(counts_))};
  }
  void state_replaced() override { discard(); }

 private:
  static constexpr std::byte kTouched{1};

  // Every member's touched blocks become those that any member touched.
  [[nodiscard]] Status agree_on_blocks() {
    if (touched_.size() == 1) {  // there is nothing to leave out
      touched_.front() = kTouched;
      return {};
    }
    std::vector<std::byte> all(touched_.size() * collective_->size());
    ANTDT_RETURN_IF_ERROR(collective_->allgather(touched_, all));
    for (std::size_t i = 0; i < all.size(); ++i) touched_[i % touched_.size()] |= all[i];
    return {};
  }

  // f(first record, past the last) of each touched block, in order.
  template <class F>
  void for_each_touched(F f) {
    for (std::size_t block = 0; block < touched_.size(); ++block) {
      if (touched_[block] != kTouched) continue;
      f(block * kBlock, std::min((block + 1) * kBlock, counts_.size()));
    }
  }

  [[nodiscard]] Json describe(Step step) const {
    return {{"schema", 1}, {"step", step.value}, {"records", counts_.size()}};
  }

  [[nodiscard]] Result<Step> load_step(const std::string& path) const {
    ANTDT_TRY(const std::string text, read_file(path));
    const Json found = Json::parse(text, nullptr, false);
    const Json step = found.is_object() ? found.value("step", Json()) : Json();
    if (!step.is_number_unsigned()) {
      return fail(ErrorKind::kCorrupt, "{} is not what this trainer writes", path);
    }
    const Step loaded{json_integer<std::uint64_t>(step)};
    if (found != describe(loaded)) {
      return fail(ErrorKind::kCorrupt,
                  "{} is of other data ({}); this job counts {} records: resume with the [data] "
                  "section that it was written with",
                  path, found.dump(), counts_.size());
    }
    return loaded;
  }

  std::vector<float> counts_;       // the model
  std::vector<float> step_;         // of the step in progress; zero in untouched blocks
  std::vector<std::byte> touched_;  // by block
  std::vector<float> packed_;       // the touched blocks of step_, one after another
  std::optional<std::uint64_t> poison_;
  Collective* collective_ = nullptr;
};

}  // namespace

Result<std::unique_ptr<Engine>> make_tally_engine(const data::DataShape& shape,
                                                  std::optional<std::uint64_t> poison) {
  if (shape.id_width != 1 || shape.dense_width != 0 || shape.id_rows == 0) {
    return fail(ErrorKind::kUsage,
                "trainer.model 'tally' counts records that are their own number: it needs "
                "data.format = \"index\"");
  }
  return std::make_unique<TallyEngine>(static_cast<std::size_t>(shape.id_rows), poison);
}

}  // namespace antdt::trainer
