#include "trainer/tally/tally_engine.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <memory_resource>
#include <new>
#include <nlohmann/json.hpp>
#include <numeric>

#include "core/check.h"
#include "core/json_integer.h"
#include "core/os/forks/huge_pages.h"
#include "core/permutation.h"
#include "trainer/loop/domains/domain_exchange.h"
#include "trainer/tally/hosted_tally.h"
#include "trainer/tally/ps_tally.h"
#include "trainer/tally/recent_counts.h"

namespace antdt::trainer {
namespace {

static_assert(std::endian::native == std::endian::little, "tally.f32 is written as it lies");

using Json = nlohmann::json;

// A step touches the records of a few shards, in any order within them. So the sum works on blocks,
// and leaves out blocks that no member touched.
constexpr std::size_t kBlock = 4096;

// Zeroed memory that is allocated only where it is written: a step touches few of many records.
class ZeroPages {
 public:
  explicit ZeroPages(std::size_t count) : count_(count) {
    if (count == 0) return;
    void* const mapped = ::mmap(nullptr, count * sizeof(float), PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) throw std::bad_alloc();
    values_ = static_cast<float*>(mapped);
  }
  ~ZeroPages() {
    if (values_ != nullptr) ::munmap(values_, count_ * sizeof(float));
  }
  ZeroPages(const ZeroPages&) = delete;
  ZeroPages& operator=(const ZeroPages&) = delete;
  [[nodiscard]] std::size_t size() const { return count_; }
  [[nodiscard]] float* data() { return values_; }
  [[nodiscard]] float& operator[](std::size_t i) { return values_[i]; }

 private:
  const std::size_t count_;
  float* values_ = nullptr;
};

class TallyEngine final : public Engine {
 public:
  TallyEngine(std::size_t records, std::optional<std::uint64_t> poison,
              std::unique_ptr<HostedTally> hosted)
      : hosted_(std::move(hosted)),
        counts_(records, &HugePages::of_process()),
        step_(records),
        touched_((records + kBlock - 1) / kBlock),
        poison_(poison) {}

  void begin_step(Collective& collective) override {
    collective_ = &collective;
    own_rank_.reset();
  }

  void begin_local_step(Collective& members) override {
    own_rank_ = members.rank();
    alone_ = members.size() == 1;
  }

  [[nodiscard]] HostedRows* hosted_rows() override { return hosted_.get(); }

  [[nodiscard]] Result<BatchSums> compute(const data::Examples& batch, bool /*last*/) override {
    if (hosted_) ANTDT_RETURN_IF_ERROR(hosted_->count(batch));
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
    if (own_rank_) return {};
    ANTDT_RETURN_IF_ERROR(agree_on_blocks());
    packed_.clear();
    for_each_touched([&](std::size_t from, std::size_t to) {
      packed_.insert(packed_.end(), step_.data() + from, step_.data() + to);
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

  [[nodiscard]] Status apply(double /*weight*/) override {
    own_rank_ && !alone_ ? recent_.add(counted_as(*own_rank_)) : count_step();
    before_mixing_.reset();
    domains_.applied();
    clear_step();
    return {};
  }

  void discard() override {
    if (before_mixing_) recent_ = std::move(*before_mixing_);
    before_mixing_.reset();
    domains_.discarded(counts_);
    clear_step();
  }

  [[nodiscard]] Status can_mix() const override { return {}; }
  // There is no mean of exact counts: a counter of the mixed replica has what any of them has
  // counted.
  [[nodiscard]] Status mix(Collective& group) override {
    before_mixing_ = recent_;
    return merge(group, recent_);
  }
  [[nodiscard]] Status consolidate(Collective& holders) override {
    RecentCounts all = recent_;
    ANTDT_RETURN_IF_ERROR(merge(holders, all));
    for (const RecentCounts::Entry& entry : all.entries()) {
      counts_[entry.counter] += static_cast<float>(entry.count);
    }
    recent_.clear();
    return {};
  }

  [[nodiscard]] Status can_exchange() const override { return {}; }
  // Counters grow by ones, which are all significant. So that records really are in other domains'
  // replicas in part, half of the counters wait in each step, others in each.
  [[nodiscard]] Status exchange_updates(const DomainLinks& links,
                                        const UpdateExchange& about) override {
    const auto chooses = [seed = combine_seed(about.step.value, 0)](std::size_t counter) {
      return combine_seed(seed, counter) % 2 == 0;
    };
    return domains_.exchange(links, about, counts_, chooses);
  }
  [[nodiscard]] Status consolidate_domains(const DomainLinks& links) override {
    return domains_.consolidate(links, counts_, {});
  }
  [[nodiscard]] wire::UpdateSums update_sums() const override { return domains_.sums(); }

  [[nodiscard]] Result<wire::EvalPartial> evaluate(const data::Examples& batch) override {
    wire::EvalPartial partial;
    partial.records = batch.count;
    return partial;
  }

  [[nodiscard]] std::vector<StateFile> state_files(Step step) const override {
    return {{kTallyFile, {}, {std::as_bytes(std::span(counts_))}},
            {kTallyDescription, describe(step).dump(1), {}}};
  }

  [[nodiscard]] Result<Step> load(CheckpointReader& files) override {
    ANTDT_TRY(const Step step, load_step(files));
    const std::span<std::byte> counts = std::as_writable_bytes(std::span(counts_));
    ANTDT_RETURN_IF_ERROR(files.into(kTallyFile, {&counts, 1}));
    state_replaced();
    return step;
  }

  [[nodiscard]] std::vector<std::span<std::byte>> state_parts() override {
    return {std::as_writable_bytes(std::span(counts_))};
  }
  void state_replaced() override {
    before_mixing_.reset();
    recent_.clear();
    domains_.replaced();
    clear_step();
  }

 private:
  static constexpr std::byte kTouched{1};

  // Makes every member's set of touched blocks the union over all members.
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

  // Calls f(first record, past the last) for each touched block, in order.
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

  [[nodiscard]] Result<Step> load_step(CheckpointReader& files) const {
    const std::string path = files.directory() + "/" + kTallyDescription;
    ANTDT_TRY(const std::string text, files.text(kTallyDescription));
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

  void clear_step() {
    for_each_touched([&](std::size_t from, std::size_t to) {
      std::fill(step_.data() + from, step_.data() + to, 0.0F);
    });
    std::fill(touched_.begin(), touched_.end(), std::byte{0});
  }
  void count_step() {
    for_each_touched([&](std::size_t from, std::size_t to) {
      for (std::size_t i = from; i < to; ++i) counts_[i] += step_[i];
    });
  }
  // What this member has counted in the step.
  [[nodiscard]] std::vector<RecentCounts::Entry> counted_as(std::uint32_t rank) {
    std::vector<RecentCounts::Entry> counted;
    for_each_touched([&](std::size_t from, std::size_t to) {
      for (std::size_t i = from; i < to; ++i) {
        if (step_[i] == 0) continue;
        counted.push_back(
            {static_cast<std::uint32_t>(i), rank, static_cast<std::uint32_t>(step_[i])});
      }
    });
    return counted;
  }
  // What any member of `group` contains. After an error `into` may be anything.
  [[nodiscard]] Status merge(Collective& group, RecentCounts& into) const {
    using Entry = RecentCounts::Entry;
    const std::size_t own = into.entries().size() * sizeof(Entry);
    std::vector<std::size_t> sizes(group.size());
    ANTDT_RETURN_IF_ERROR(group.allgather(std::as_bytes(std::span(&own, 1)),
                                          std::as_writable_bytes(std::span(sizes))));
    if (std::ranges::any_of(sizes, [](std::size_t bytes) { return bytes % sizeof(Entry) != 0; })) {
      return fail(ErrorKind::kCorrupt, "a member said a size that no counts have");
    }
    const auto begin_of = [&](std::size_t rank) {
      return std::accumulate(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(rank),
                             std::size_t{0}) /
             sizeof(Entry);
    };
    std::vector<Entry> all(begin_of(sizes.size()));
    std::ranges::copy(into.entries(),
                      all.begin() + static_cast<std::ptrdiff_t>(begin_of(group.rank())));
    ANTDT_RETURN_IF_ERROR(group.allgather_parts(sizes, std::as_writable_bytes(std::span(all))));
    for (std::size_t rank = 0; rank < sizes.size(); ++rank) {
      const auto part = std::span(all).subspan(begin_of(rank), sizes[rank] / sizeof(Entry));
      const bool fine =
          std::ranges::is_sorted(part) && (part.empty() || part.back().counter < counts_.size());
      if (!fine) return fail(ErrorKind::kCorrupt, "a member sent what is no list of counts");
      into.merge(part);
    }
    return {};
  }

  // the model; in huge pages, because the process is forked with it (state_child.h)
  std::unique_ptr<HostedTally> hosted_;  // null: it has no rows on servers
  std::pmr::vector<float> counts_;
  ZeroPages step_;                  // sums of the present step; zero in untouched blocks
  std::vector<std::byte> touched_;  // by block
  std::vector<float> packed_;       // the touched blocks of step_, one after another
  std::optional<std::uint64_t> poison_;
  Collective* collective_ = nullptr;
  std::optional<std::uint32_t> own_rank_;  // in a local step
  bool alone_ = false;                     // nobody else counts, so the replica is the model
  RecentCounts recent_;                    // besides counts_, which are the same in all replicas
  std::optional<RecentCounts> before_mixing_;
  DomainExchange domains_;
};

}  // namespace

Result<std::unique_ptr<Engine>> make_tally_engine(const data::DataShape& shape,
                                                  std::optional<std::uint64_t> poison) {
  if (shape.id_width != 1 || shape.dense_width != 0 || shape.id_rows == 0) {
    return fail(ErrorKind::kUsage,
                "trainer.model 'tally' counts records that are their own number: it needs "
                "data.format = \"index\"");
  }
  return std::make_unique<TallyEngine>(static_cast<std::size_t>(shape.id_rows), poison, nullptr);
}

Result<std::unique_ptr<Engine>> make_hosted_tally_engine(const data::DataShape& shape,
                                                         std::optional<std::uint64_t> poison) {
  ANTDT_TRY(auto rows, make_tally_ps_model(shape, 3, poison));
  return std::make_unique<TallyEngine>(static_cast<std::size_t>(shape.id_rows), poison,
                                       std::make_unique<HostedTally>(std::move(rows)));
}

}  // namespace antdt::trainer
