#include "trainer/worker/training_state.h"

#include "core/check.h"
#include "core/wire/codec.h"

namespace antdt::worker {
namespace {

struct StateMeta {
  Step step;
  std::uint64_t phase = 0;
  std::vector<wire::MemberPlace> places;
  double loss_sum = 0;
  double weight_sum = 0;
  std::uint64_t checkpoint = 0;
  wire::StepHistory history{};
  double weight = 0;
  double rate = 1;
  template <class Self, class V>
  static void fields(Self& m, V& v) {
    v("step", m.step);
    v("phase", m.phase);
    v("places", m.places);
    v("loss_sum", m.loss_sum);
    v("weight_sum", m.weight_sum);
    v("checkpoint", m.checkpoint);
    v("history", m.history);
    v("weight", m.weight);
    v("rate", m.rate);
  }
};

}  // namespace

void TrainingState::settle(Generation generation, const std::vector<WorkerId>& its_members) {
  settled = consolidated = generation;
  cut = 0;
  places.clear();
  for (const WorkerId worker : its_members) places.push_back({worker, 0});
  log.begin(generation);
}

void TrainingState::consolidate(Generation generation, const std::vector<std::uint64_t>& merged) {
  ANTDT_CHECK(merged.size() == places.size(), "{} places of {} members", merged.size(),
              places.size());
  consolidated = generation;
  for (std::size_t rank = 0; rank < merged.size(); ++rank) places[rank].place = merged[rank];
  log.keep(phase, merged);
}

void TrainingState::forget() {
  settled = consolidated = {};
  pristine = false;
  phase = 0;
  weight = 0;
  rate = 1;
  cut = 0;
  places.clear();
  loss_sum = weight_sum = 0;
  log.begin({});
}

std::string meta_of(const TrainingState& state) {
  return wire::encode(StateMeta{state.step, state.phase, state.places, state.loss_sum,
                                state.weight_sum, state.checkpoint, state.log.history(),
                                state.weight, state.rate});
}

Status take_over(const std::string& meta, TrainingState& state) {
  ANTDT_TRY(const StateMeta read, wire::decode<StateMeta>(meta));
  state.step = read.step;
  state.weight = read.weight;
  state.rate = read.rate;
  state.phase = read.phase;
  state.places = read.places;
  state.loss_sum = read.loss_sum;
  state.weight_sum = read.weight_sum;
  state.checkpoint = read.checkpoint;
  state.log = StepLog(read.history);
  return {};
}

}  // namespace antdt::worker
