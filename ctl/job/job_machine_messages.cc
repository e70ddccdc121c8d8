// What workers say, as events of the parts.
#include <algorithm>

#include "ctl/job/job_machine.h"
#include "ctl/membership/data_identity.h"

namespace antdt::ctl {
namespace {

// From the last sign that a checkpoint is being written.
constexpr Duration kBegunIsLost = std::chrono::seconds(60);

}  // namespace

void JobMachine::on(const in::FromWorker& e) {
  if (!config_.spec.external && !lifecycle_.is_current(e.member)) {
    return send(e.member, e.generation,
                wire::Refused{wire::RefusalCode::kStale,
                              fmt::format("attempt {} of {} is not the current one",
                                          e.member.attempt, e.member.worker)},
                e.seq);
  }
  vanished_.erase(e.member);
  std::visit([&](const auto& body) { heard(e.member, e.generation, e.seq, body); }, e.body);
}

void JobMachine::heard(Member m, Generation g, std::uint64_t seq, const wire::Fetch& e) {
  const auto before = history_.hand(ledger_, membership_, m, g);
  feed(shard_server::ledger::Input(shard_server::ledger::FetchRequested{m, g, seq, e}));
  if (before) remember(RunHistory::changed(ledger_, m, *before));
}

void JobMachine::heard(Member m, Generation g, std::uint64_t seq, const wire::Recalled& e) {
  const auto before = history_.hand(ledger_, membership_, m, g);
  feed(shard_server::ledger::Input(
      shard_server::ledger::RecallAnswered{m, g, seq, e.phase, e.end, e.records}));
  if (before) remember(RunHistory::changed(ledger_, m, *before));
}

// Under every sync, and before this worker is a member of anything: it trains on nothing. Those
// who train already go on from the checkpoint that they write now.
bool JobMachine::has_other_data(Member m, const wire::DataIdentity& data) {
  const WorkerProcess* process = lifecycle_.find(m.worker);
  const std::string host = process == nullptr ? "the job daemon's host, where it was started by "
                                                "hand"
                                              : host_name(process->place.host);
  const auto difference =
      data_difference(config_.data, data, fmt::format("{} on {}", m.worker, host));
  if (!difference) return false;
  const std::string reason = fmt::format(
      "the data of {} on {} are not those that the launching host had when the run began, which "
      "data.json tells: {}. Nothing was trained on them. Copy the launching host's files to {} and "
      "go on with antdt run --resume {}; if the launching host's are the wrong ones, put the right "
      "ones on every host and begin a new run",
      m.worker, host, *difference, host, config_.job);
  feed(job::Event(job::Failed{"data", 2, reason, config_.spec.stop_grace}));
  send(m, generation(), wire::Leave{reason, 2});
  return true;
}

void JobMachine::heard(Member m, Generation g, std::uint64_t, const wire::Join& e) {
  if (has_other_data(m, e.data)) return;
  if (devices_.say(m, e.device)) image_dirty_ = true;
  if (uses_servers() || (e.collective && !config_.spec.external)) {
    vitals_.watch(m, now_);
    feed(job::Event(job::Joined{m, true}));
    if (!lifecycle_.welcomes(m)) return;
    tell_of_injection(m, true);
    if (uses_servers()) {
      hear_said(m, e.said);
      return feed(servers::Input(servers::GroupJoinRequested{m, e.endpoint, e.key, e.problem}));
    }
    wire::Join join = e;
    join.data.files.clear();  // looked at, and there may be thousands
    return feed(MembershipEvent(MemberJoined{m, g, std::move(join)}));
  }
  if (std::ranges::find(loose_members_, m) == loose_members_.end()) {
    std::erase_if(loose_members_, [&](Member other) { return other.worker == m.worker; });
    loose_members_.push_back(m);
    feed(shard_server::ledger::Input(
        shard_server::ledger::MemberAdmitted{m, membership_.generation()}));
  }
  const std::uint64_t phase_before = lifecycle_.phase().phase;
  feed(job::Event(job::Joined{m, false}));
  // Who comes later, or asks again, hears of the phase that is open.
  if (lifecycle_.phase().phase == phase_before && phase_before > 0) {
    send(m, membership_.generation(), with_committed(lifecycle_.phase()));
  }
}

void JobMachine::heard(Member m, Generation g, std::uint64_t, const wire::Address& e) {
  feed(MembershipEvent(AddressArrived{m, g, e}));
}

void JobMachine::heard(Member m, Generation g, std::uint64_t, const wire::Ready& e) {
  if (membership_.settled() && g == membership_.generation() && membership_.contains(m)) {
    send(m, g, wire::Settle{e.step, plan_of(m.worker)});  // our answer was lost
    if (lifecycle_.phase().phase > 0) send(m, g, with_committed(lifecycle_.phase()));
    return;
  }
  remember_steps(e.history, e.step);
  feed(MembershipEvent(ReadyArrived{m, g, e}));
}

void JobMachine::heard(Member m, Generation g, std::uint64_t, const wire::Progress& e) {
  vitals_.heard(m, {}, {}, now_);
  remember_steps(e.history, e.step);
  feed(shard_server::ledger::Input(shard_server::ledger::ProgressReported{m, g, e.phase, e.place}));
  if (e.step > progress_.step()) feed(job::Event(job::Progressed{e.step}));
  uses_servers() ? add_up(m, e) : progress_.update(e, now_);
  if (e.plan != PlanVersion{}) feed(control::Input(control::PlanTookEffect{e.plan}));
  if (!e.done) return;
  const wire::PhaseStart open = lifecycle_.phase();
  if (e.phase < open.phase) {  // it has not heard of the next phase
    // One of a generation that is not settled yet must not hear of it either: this
    // was said in an earlier one, and came late.
    const bool late = !group_is_whole() || g != generation();
    if (lifecycle_.collective() && late) return;
    return send(m, generation(), with_committed(open));
  }
  if (!uses_servers() && e.phase == open.phase && open.what == wire::PhaseKind::kTrain)
    close_epoch(open.epoch);
  if (g == generation()) feed(job::Event(job::MemberDone{m, e.phase}));
}

void JobMachine::fill_epoch(Epoch epoch) {
  EpochReport& report = epochs_.at(epoch.value);
  report.train_loss = progress_.phase_loss();
  report.samples = progress_.samples_in_phase();
  report.seconds = progress_.phase_seconds(now_);
  progress_.end_phase(now_);
}

void JobMachine::close_epoch(Epoch epoch) {
  const EpochReport& report = epochs_.at(epoch.value);
  if (report.samples > 0) return;  // by an earlier member's report
  fill_epoch(epoch);
  note("epoch", fmt::format("epoch {}: training loss {:.4f}, {:.0f} samples/s", epoch.value + 1,
                            report.train_loss,
                            static_cast<double>(report.samples) / std::max(report.seconds, 1e-9)));
}

// Places count from where a generation, or a phase, began: what was trained in an
// earlier one says something else of the ledger as it is now.
void JobMachine::heard(Member m, Generation g, std::uint64_t, const wire::CheckpointBegun& e) {
  if (g != membership_.base() || e.phase != lifecycle_.phase().phase || uses_servers()) return;
  if (begun_) begun_failed("another one was begun");
  begun_ = Begun{e, {}, {}, now_};
  begun_->store.writer = m;
  if (const Status kept = keep_aside(e.places, begun_->store); !kept) {
    begun_->error = kept.error().message;
  }
  remember_steps(e.history, e.step);
  feed(job::Event(job::CheckpointBegun{e.number}));
}

// What was said of its step when it was begun holds whatever has become of generation and
// phase. One that was not heard to begin is of this generation and phase, or nothing.
void JobMachine::heard(Member m, Generation g, std::uint64_t, const wire::CheckpointWritten& e) {
  if (is_begun(m, e)) {
    Begun begun = std::move(*begun_);
    begun_.reset();
    const std::string& error = e.error.empty() ? begun.error : e.error;
    if (!error.empty()) return checkpoint_is(e.number, error);
    begun.store.written = e;
    begun.store.parts = parts_of(e, std::vector<Member>(e.files.size(), m));
    out_->emplace_back(std::move(begun.store));
    return;
  }
  if (g != membership_.base() || e.phase != lifecycle_.phase().phase) return;
  // The phase may be over when it is stored, and then it is not the trained model.
  if (lifecycle_.phase().what != wire::PhaseKind::kFinish)
    feed(job::Event(job::CheckpointBegun{e.number}));
  store_checkpoint(e, m, std::vector<Member>(e.files.size(), m));
}

bool JobMachine::is_begun(Member m, const wire::CheckpointWritten& e) const {
  return begun_ && begun_->store.writer == m && begun_->said.number == e.number &&
         begun_->said.step == e.step;
}

void JobMachine::begun_failed(const std::string& why) {
  const std::uint64_t number = begun_->said.number;
  begun_.reset();
  feed(job::Event(job::CheckpointStored{number, fmt::format("checkpoint {}: {}", number, why)}));
}

// That it is written, or not, may be lost on its way.
void JobMachine::look_at_begun() {
  if (!begun_) return;
  const Member writer = begun_->store.writer;
  if (vitals_.io().of(writer).what == kWritesCheckpoint) begun_->seen = now_;
  if (now_ - begun_->seen < kBegunIsLost) return;
  begun_failed(
      fmt::format("{} writes it no more and has not said what became of it", writer.worker));
}

// Ledger and accounts as of these places.
Status JobMachine::keep_aside(const std::vector<wire::MemberPlace>& places,
                              out::StoreCheckpoint& store) const {
  ANTDT_TRY(store.ledger_image, ledger_.image_at(places));
  ANTDT_TRY(const auto then, shard_server::Ledger::restore(config_.ledger, store.ledger_image));
  store.accounts_image = accounts_.at(then).image();
  store.lineage = membership_.lineage();
  store.generation = generation();
  store.epoch = ledger_.phase().epoch;
  return {};
}

void JobMachine::checkpoint_is(std::uint64_t number, const std::string& error) {
  feed(job::Event(job::CheckpointStored{number, error}));
  const bool is_model = lifecycle_.state() == JobState::kFinishing && !uses_servers();
  if (is_model && !error.empty() && !ended_) let_another_write_the_model();
}

// The next one on another host, where there is any: it may be this one's disk. Each hears it
// with the next tick.
void JobMachine::let_another_write_the_model() {
  const std::vector<ExpectedMember>& group = membership_.members();
  if (group.size() < 2) return;  // it tries again by itself
  const auto writes = std::ranges::find_if(
      group, [&](const ExpectedMember& e) { return e.member == model_writer_; });
  const std::size_t now = writes == group.end() ? 0 : writes - group.begin();
  std::size_t next = (now + 1) % group.size();
  for (std::size_t i = 1; i < group.size(); ++i) {
    const std::size_t other = (now + i) % group.size();
    if (group[other].host == group[now].host) continue;
    next = other;
    break;
  }
  model_writer_ = group[next].member;
  ++model_tries_;
  finish_said_ = {};
}

void JobMachine::store_checkpoint(const wire::CheckpointWritten& e, Member writer,
                                  const std::vector<Member>& writers) {
  if (!e.error.empty()) return checkpoint_is(e.number, e.error);
  out::StoreCheckpoint store;
  store.written = e;
  store.parts = parts_of(e, writers);
  store.writer = writer;
  if (const Status kept = keep_aside(e.places, store); !kept) {
    return checkpoint_is(e.number, kept.error().message);
  }
  remember_steps(e.history, e.step);
  out_->emplace_back(std::move(store));
}

// Whose host is not known, since somebody started it by hand, writes into the run directory of
// the launching host.
std::vector<copies::Part> JobMachine::parts_of(const wire::CheckpointWritten& written,
                                               const std::vector<Member>& writers) const {
  std::map<std::string, std::vector<wire::CheckpointFile>> by_host;
  for (std::size_t i = 0; i < written.files.size(); ++i) {
    const WorkerProcess* const process = lifecycle_.find(writers.at(i).worker);
    if (process == nullptr || process->place.host.empty()) continue;
    by_host[process->place.host].push_back(written.files[i]);
  }
  std::vector<copies::Part> parts;
  for (auto& [host, files] : by_host) parts.push_back({host, std::move(files)});
  return parts;
}

void JobMachine::heard(Member m, Generation, std::uint64_t, const wire::Metrics& e) {
  switch (vitals_.heard(m, e.sum, now_)) {
    case IoMoved::kNothing:
      break;
    case IoMoved::kWritten:
      feed(job::Event(job::CheckpointMoved{}));
      break;
    case IoMoved::kHeldUpFor:
      state_moves();
      break;
  }
  WorkerReport& measured = measured_[m.worker];
  measured.samples = std::max(measured.samples, e.sum.samples_total);
  measured.time = e.sum.account;
  history_.measured(m, e.sum);
  const bool batches = e.sum.batches > 0 || e.sum.skipped > 0;
  if (batches || e.sum.hops > 0 || e.probe.looked_us > 0)
    feed(control::Input(control::MetricsReported{{m, e}}));
}

// A checkpoint is read, or a state received, and bytes come: those that wait for it, or
// cannot say that they are there before they have it, are waited for.
void JobMachine::state_moves() {
  if (uses_servers()) return feed(servers::Input(servers::RestoreAdvanced{}));
  feed(MembershipEvent(StateMoves{}));
}

void JobMachine::heard(Member m, Generation, std::uint64_t, const wire::Bye& e) {
  WorkerReport& measured = measured_[m.worker];
  measured.samples = std::max(measured.samples, e.samples_total);
  measured.time = e.account;
  if (!e.error.empty()) note("worker-error", fmt::format("{}: {}", m.worker, e.error));
}

}  // namespace antdt::ctl
