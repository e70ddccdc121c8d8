#include "ctl/job/subjects/checkpoints.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "ctl/job/parts.h"
#include "ctl/job/work.h"

namespace antdt::ctl::job {
namespace {

// Measured from the last sign that a checkpoint is being written.
constexpr Duration kBegunIsLost = std::chrono::seconds(60);

constexpr std::uint64_t kAny = std::numeric_limits<std::uint64_t>::max();

copies::Age next_older(const copies::Age& age) {
  if (age.number > 0) return {age.generation, age.number - 1};
  return age.generation > 0 ? copies::Age{age.generation - 1, kAny} : copies::Age{};
}

}  // namespace

// Places count from where a generation, or a phase, began. Places of an earlier one would mean
// something else in the present ledger.
void Checkpoints::begun(Member writer, Generation generation, const wire::CheckpointBegun& e,
                        Work& work) {
  if (!is_of_now(generation, e.phase)) return;
  if (begun_) begun_failed("another one was begun", work);
  begun_ = Begun{e, generation, {}, {}, work.now};
  begun_->store.writer = writer;
  if (const Status kept = keep_aside(e.places, begun_->store); !kept) {
    begun_->error = kept.error().message;
  }
  parts_.messages.hear_history(e.history, e.step, work);
  work.then(lifecycle::CheckpointWriteBegun{e.number});
}

// While members meet behind the end of the training, a checkpoint is of a step before it. It would
// come back with a ledger that says that nothing follows.
bool Checkpoints::is_of_now(Generation generation, std::uint64_t phase) const {
  const wire::PhaseStart open = parts_.lifecycle.phase();
  const bool is_cut = open.what == wire::PhaseKind::kTrain && parts_.lifecycle.training_ends();
  return parts_.group.may_write_checkpoint(generation) && phase == open.phase &&
         (!is_cut || parts_.group.whole());
}

// What was reported when the checkpoint was begun stays valid, whatever became of generation and
// phase. If no begin was heard, the checkpoint must be of the present generation and phase;
// otherwise it is ignored. A report that is repeated while its checkpoint is being stored is
// answered with that one: stored later, it would find what a member writes there next.
void Checkpoints::written(Member writer, Generation generation, const wire::CheckpointWritten& e,
                          Work& work) {
  if (is_being_stored(writer, generation, e)) return;
  const std::vector<Member> writers(e.files.size(), writer);
  if (is_begun(writer, e)) {
    Begun begun = std::move(*begun_);
    begun_.reset();
    const std::string& error = e.error.empty() ? begun.error : e.error;
    if (!error.empty()) {
      remove_left(e.number, begun.store.generation, e.step, work);
      return conclude(e.number, error, work);
    }
    begun.store.written = e;
    begun.store.parts = parts_of(e, writers);
    return order(std::move(begun.store), work);
  }
  const wire::PhaseStart open = parts_.lifecycle.phase();
  if (!is_of_now(generation, e.phase)) return;
  // If the phase is over when the checkpoint is stored, it is not the trained model.
  if (open.what != wire::PhaseKind::kFinish) work.then(lifecycle::CheckpointWriteBegun{e.number});
  store(e, writer, writers, work);
}

void Checkpoints::on(const CheckpointStored& e, Work& work) {
  std::erase_if(storing_, [&](const Storing& s) { return s.number == e.number; });
  if (e.error.empty()) {
    work.note("checkpoint", fmt::format("checkpoint {} is stored", e.name));
    parts_.keep_all_times();
  } else {
    remove_left(e.number, e.generation, e.step, work);
  }
  conclude(e.number, e.error, work);
}

void Checkpoints::writer_ended(Member writer, Work& work) {
  if (!begun_ || begun_->store.writer != writer) return;
  begun_failed(fmt::format("{} ended before it was written", writer.worker), work);
}

void Checkpoints::went_back(Work& work) {
  dense_.reset();
  slices_.reset();
  if (begun_) begun_failed("training has gone back to an earlier one", work);
}

void Checkpoints::look_at_begun(Work& work) {
  if (!begun_) return;
  const Member writer = begun_->store.writer;
  if (parts_.vitals.io().of(writer).what == kWritesCheckpoint) begun_->seen = work.now;
  if (work.now - begun_->seen < kBegunIsLost) return;
  begun_failed(
      fmt::format("{} writes it no more and has not said what became of it", writer.worker), work);
}

void Checkpoints::store(const wire::CheckpointWritten& written, Member writer,
                        const std::vector<Member>& writers, Work& work) {
  if (!written.error.empty()) {
    remove_left(written.number, parts_.group.generation(), written.step, work);
    return conclude(written.number, written.error, work);
  }
  StoreCheckpoint store;
  store.written = written;
  store.parts = parts_of(written, writers);
  store.writer = writer;
  if (const Status kept = keep_aside(written.places, store); !kept) {
    return conclude(written.number, kept.error().message, work);
  }
  parts_.messages.hear_history(written.history, written.step, work);
  order(std::move(store), work);
}

// The image makes the turn commit, which fails if another incarnation has taken over: its accounts
// may know more than these.
void Checkpoints::order(StoreCheckpoint store, Work& work) {
  if (!parts_.is_hybrid()) return order_whole(std::move(store), work);
  dense_ = std::move(store);
  join_parts(work);
}

void Checkpoints::slices(const servers::ConcludeCut& cut, Work& work) {
  if (!cut.error.empty()) {
    if (dense_ && dense_->written.number == cut.number) dense_.reset();
    remove_left(cut.number, parts_.servers.generation(), {}, work);
    return conclude(cut.number, cut.error, work);
  }
  slices_ = cut;
  join_parts(work);
}

void Checkpoints::join_parts(Work& work) {
  if (!dense_ || !slices_ || dense_->written.number != slices_->number) return;
  StoreCheckpoint store = *std::exchange(dense_, std::nullopt);
  const servers::ConcludeCut slices = *std::exchange(slices_, std::nullopt);
  wire::CheckpointWritten& written = store.written;
  if (written.step.value != slices.version) {
    return conclude(written.number,
                    fmt::format("checkpoint {}: its dense part is of step {}, and its rows are of "
                                "step {}",
                                written.number, written.step, slices.version),
                    work);
  }
  std::vector<Member> writers(written.files.size(), store.writer);
  writers.insert(writers.end(), slices.writers.begin(), slices.writers.end());
  written.files.insert(written.files.end(), slices.files.begin(), slices.files.end());
  store.parts = parts_of(written, writers);
  order_whole(std::move(store), work);
}

void Checkpoints::order_whole(StoreCheckpoint store, Work& work) {
  work.save_image();
  storing_.push_back(
      {store.writer, store.generation, store.written.number, store.written.directory});
  work.say(std::move(store));
}

bool Checkpoints::is_being_stored(Member writer, Generation generation,
                                  const wire::CheckpointWritten& e) const {
  return std::ranges::any_of(storing_, [&](const Storing& s) {
    return s.writer == writer && s.generation == generation && s.number == e.number &&
           s.directory == e.directory;
  });
}

bool Checkpoints::is_begun(Member writer, const wire::CheckpointWritten& e) const {
  return begun_ && begun_->store.writer == writer && begun_->said.number == e.number &&
         begun_->said.step == e.step;
}

void Checkpoints::begun_failed(const std::string& why, Work& work) {
  const Begun begun = *std::exchange(begun_, std::nullopt);
  const std::uint64_t number = begun.said.number;
  remove_left(number, begun.store.generation, begun.said.step, work);
  tell(number, fmt::format("checkpoint {}: {}", number, why), work);
}

void Checkpoints::conclude(std::uint64_t number, const std::string& error, Work& work) {
  const bool is_model = parts_.lifecycle.is_model(number);
  tell(number, error, work);
  if (is_model && !error.empty() && !parts_.ended) parts_.group.model_failed();
}

void Checkpoints::tell(std::uint64_t number, const std::string& error, Work& work) const {
  const bool older_may_come = std::ranges::any_of(
      storing_, [&](const Storing& storing) { return storing.number < number; });
  work.then(lifecycle::CheckpointConcluded{number, error, older_may_come});
}

// The directory of a cut has its number, and is never written again. Members of a ring write the
// trained model into a directory of the same step again and again, so that one may be under way.
void Checkpoints::remove_left(std::uint64_t number, Generation generation, Step step, Work& work) {
  const bool with_servers = parts_.config.spec.servers > 0;
  if (!with_servers && step.value == 0) return;
  const copies::Age failed = with_servers ? copies::Age{parts_.servers.generation().value, number}
                                          : copies::Age{generation.value, step.value - 1};
  given_up_ = std::max(given_up_, failed);
  const copies::Age up_to = std::min(given_up_, newest_over());
  if (up_to != copies::Age{}) work.say(RemoveUnfinished{up_to});
}

// A stop orders a checkpoint while an older one may still be fetched from its host, or be written
// by a member that is not the writer any more. Where rows are on servers, all that write a
// checkpoint share its directory, and it fails as a whole.
copies::Age Checkpoints::newest_over() const {
  copies::Age newest{kAny, kAny};
  for (const Storing& s : storing_) {
    const std::string_view directory = s.directory;
    const auto age = copies::age_of(directory.substr(directory.rfind('/') + 1));
    if (age) newest = std::min(newest, next_older(*age));
  }
  if (begun_ && parts_.config.spec.servers == 0) {
    newest = std::min(newest, next_older({begun_->generation.value, begun_->said.step.value}));
  }
  return newest;
}

// Keeps ledger and accounts as of these places.
Status Checkpoints::keep_aside(const std::vector<wire::MemberPlace>& places,
                               StoreCheckpoint& store) const {
  ANTDT_TRY(Records::Images images, parts_.records.images_at(places));
  store.ledger_image = std::move(images.ledger);
  store.accounts_image = std::move(images.accounts);
  store.lineage = parts_.membership.lineage();
  store.generation = parts_.group.generation();
  store.epoch = parts_.records.ledger().phase().epoch;
  return {};
}

// If the writer's host is not known, somebody started it by hand, and it writes into the run
// directory of the launching host.
std::vector<copies::Part> Checkpoints::parts_of(const wire::CheckpointWritten& written,
                                                const std::vector<Member>& writers) const {
  std::map<std::string, std::vector<wire::CheckpointFile>> by_host;
  for (std::size_t i = 0; i < written.files.size(); ++i) {
    const WorkerProcess* const process = parts_.lifecycle.find(writers.at(i).worker);
    if (process == nullptr || process->place.host.empty()) continue;
    by_host[process->place.host].push_back(written.files[i]);
  }
  std::vector<copies::Part> parts;
  for (auto& [host, files] : by_host) parts.push_back({host, std::move(files)});
  return parts;
}

}  // namespace antdt::ctl::job
