#include "trainer/c_api/alone/local_job.h"

#include <algorithm>
#include <utility>

#include "core/permutation.h"
#include "core/wire/dispatch.h"
#include "core/wire/packet.h"
#include "core/wire/worker_messages.h"

namespace antdt::capi {

// To where the packet came from.
struct LocalJob::Answers {
  const wire::Envelope& heard;
  std::vector<wire::Packet>& packets;
  const Generation& generation;

  template <class T>
  void say(const T& message, std::uint64_t seq = 0) const {
    wire::Envelope envelope;
    envelope.job = heard.job;
    envelope.worker = heard.worker;
    envelope.attempt = heard.attempt;
    envelope.generation = generation;
    envelope.seq = seq;
    packets.push_back(wire::make_packet(envelope, message));
  }
};

LocalJob::LocalJob(LocalJobConfig config) : config_(std::move(config)) {
  for (std::uint32_t epoch = 0; epoch < config_.epochs; ++epoch) {
    phases_.push_back({wire::PhaseKind::kTrain, Epoch{epoch}, config_.records});
    if (config_.eval_records > 0)
      phases_.push_back({wire::PhaseKind::kEval, Epoch{epoch}, config_.eval_records});
  }
}

Status LocalJob::hear(const wire::Packet& packet, std::vector<wire::Packet>& answers) {
  ANTDT_TRY(const wire::Envelope envelope, wire::open_envelope(packet));
  Status status;
  const Answers to{envelope, answers, generation_};
  // What else a worker says (reports, checkpoints, bye) nobody needs here.
  std::ignore = wire::dispatch<wire::Hello, wire::Join, wire::Address, wire::Ready, wire::Fetch,
                               wire::Progress>(envelope.kind, packet.body, [&](auto message) {
    if (message) {
      on(*message, to);
    } else {
      status = tl::unexpected(message.error());
    }
  });
  return status;
}

void LocalJob::on(const wire::Hello& hello, const Answers& answers) {
  const auto version = wire::negotiate_version(hello);
  if (!version)
    return answers.say(wire::Refused{wire::RefusalCode::kVersion, version.error().message});
  answers.say(wire::WorkerWelcome{*version, "localhost", "", "{}"});
}

// From: greeted. To: forming; of a loose client, in phase 1. A member whose collective broke (it
// has nobody in it) cannot go on. From: in a phase, if the program ends the training. To: forming;
// over.
void LocalJob::on(const wire::Join& join, const Answers& answers) {
  const bool is_new = answers.heard.generation == generation_;
  const bool ends = is_new && generation_ != Generation{} && !join.ends.empty();
  step_ = std::max(step_, join.step);
  if (ends) end_training();
  if (over()) return answers.say(wire::Leave{"the job is done", 0});
  if (!join.problem.empty() || (is_new && generation_ != Generation{} && !ends)) {
    return answers.say(wire::Leave{"a world of one broke: " + join.problem, 1});
  }
  collective_ = join.collective;
  if (!collective_) {
    generation_ = Generation{1};
    return start_phase(answers);
  }
  if (is_new) {
    base_ = generation_;
    generation_ = generation_.next();
  }
  wire::Form form;
  form.size = 1;
  form.secret = config_.secret;
  form.base = base_;
  answers.say(form);
}

// The phase that the member broke off is over, and its epoch is the last; it is evaluated if
// something of it was trained.
void LocalJob::end_training() {
  if (over()) return;
  const Epoch last = phases_[phase_].epoch;
  std::erase_if(phases_, [&](const Phase& phase) { return phase.epoch > last; });
  phase_ = step_ > begun_at_ ? phase_ + 1 : phases_.size();
  cursor_ = committed_ = 0;
}

// From: forming. To: connecting.
void LocalJob::on(const wire::Address& address, const Answers& answers) {
  answers.say(wire::Roster{{{answers.heard.worker, 0, "", address.at}}});
}

// From: connecting. To: in phase 1.
void LocalJob::on(const wire::Ready& ready, const Answers& answers) {
  step_ = begun_at_ = ready.step;
  const wire::PlanEntry share{answers.heard.worker, config_.micro_batch, config_.accumulation};
  answers.say(wire::Settle{ready.step, {PlanVersion{1}, {share}}});
  start_phase(answers);
}

void LocalJob::start_phase(const Answers& answers) const {
  const Phase& phase = phases_[phase_];
  answers.say(wire::PhaseStart{phase_number(), phase.what, phase.epoch, phase.records, 0});
}

// From: in a phase. To: in the next; over.
void LocalJob::next_phase(const Answers& answers) {
  ++phase_;
  cursor_ = committed_ = 0;
  begun_at_ = step_;
  over() ? answers.say(wire::Leave{"the job is done", 0}) : start_phase(answers);
}

void LocalJob::on(const wire::Fetch& fetch, const Answers& answers) {
  if (answers.heard.seq != answered_) {
    answered_ = answers.heard.seq;
    const bool ended = over() || fetch.phase < phase_number();
    last_reply_ = {fetch.phase, ended ? wire::GrantStatus::kEnd : wire::GrantStatus::kStale, {}, 0};
    if (!over() && fetch.phase == phase_number()) grant(fetch, last_reply_);
  }
  answers.say(last_reply_, answers.heard.seq);
  if (over() || fetch.phase != phase_number() || last_reply_.status != wire::GrantStatus::kEnd)
    return;
  // Members say that they have trained all; an evaluation ends with its last records.
  if (!collective_ || phases_[phase_].what == wire::PhaseKind::kEval) next_phase(answers);
}

void LocalJob::grant(const wire::Fetch& fetch, wire::Grants& reply) {
  const Phase& phase = phases_[phase_];
  committed_ = std::max(committed_, fetch.place);
  reply.status = wire::GrantStatus::kGranted;
  if (committed_ >= phase.records) {
    reply.status = wire::GrantStatus::kEnd;
  } else if (fetch.want > 0 && cursor_ == phase.records) {
    reply.status = wire::GrantStatus::kWait;
    reply.retry_ms = 1;
  } else if (fetch.want > 0) {
    const std::uint64_t from =
        std::exchange(cursor_, std::min(phase.records, cursor_ + fetch.want));
    const std::uint64_t seed = combine_seed(combine_seed(config_.seed, phase.epoch.value), 1);
    const bool shuffled = config_.shuffle && phase.what == wire::PhaseKind::kTrain;
    reply.pieces.push_back({0, 0, phase.records, from, cursor_, seed, shuffled});
  }
}

void LocalJob::on(const wire::Progress& progress, const Answers& answers) {
  if (over() || progress.phase != phase_number()) return;
  committed_ = std::max(committed_, progress.place);
  step_ = std::max(step_, progress.step);
  if (progress.done) next_phase(answers);
}

}  // namespace antdt::capi
