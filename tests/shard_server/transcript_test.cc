// The ledger's transcripts. What is written to the journal is not shown. Members are written
// w0.1: worker w0, attempt 1. The scripts shuffle nothing: records are in file order.
//
//   data records=N shard=N [eval=N] [limit=N] [drop=1]    the ledger
//   open PHASE train|eval EPOCH
//   admit|lost|left MEMBER [gen=G]
//   settle gen=G [places=M:PLACE[!],...] [members=M,...]    ! : it was lost
//   shares WORKER=STEP[/HOLD] ...
//   fetch MEMBER seq=N place=N want=N [late=N] [gen=G] [phase=P] [records=N]
//             [skipped=FROM:TO:REASON,...]
//       records: of the partial result of an evaluation
//   progress MEMBER place=N [gen=G] [phase=P]
//   recalled MEMBER number=N end=N [gen=G] [phase=P]
//   skip FROM:TO REASON
//   restart             the ledger is made again from the journal
//   state               shows the counts and every hand
//   skips               shows what the accounts say that programs skipped
#include "tests/transcript/transcript.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "core/wire/shard_messages.h"
#include "recorder.h"

namespace antdt::shard_server {
namespace {

using transcript::Line;
using transcript::member_of;
using transcript::show;
using transcript::split;

std::string show(Interval at) { return fmt::format("{}:{}", at.from, at.to); }

LedgerConfig config_of(const Line& line) {
  LedgerConfig config;
  config.train = {line.number("records", 0), line.number("shard", 100), Shuffle::kNone, 0};
  config.eval = {line.number("eval", 0), line.number("shard", 100), Shuffle::kNone, 0};
  config.drops_late = line.number("drop", 0) != 0;
  config.retry_limit = static_cast<std::uint32_t>(line.number("limit", config.retry_limit));
  return config;
}

class LedgerScript : public transcript::Machine {
 public:
  explicit LedgerScript(const Line& data) : recorder_(config_of(data)) {}

  std::vector<std::string> run(const Line& line, MonoTime now) override {
    if (line.what() == "restart") {
      recorder_.restart();
      return {};
    }
    if (line.what() == "state") return state();
    if (line.what() == "skips") return skips();
    std::vector<std::string> shown;
    for (const ledger::Effect& effect : recorder_.step(event_of(line.what(), line), now)) {
      shown.push_back(std::visit([this](const auto& e) { return this->show_effect(e); }, effect));
    }
    // A ledger that is replayed from the journal has the same state.
    if (recorder_.replayed().image() != recorder_.ledger().image())
      shown.emplace_back("REPLAY DIFFERS");
    return shown;
  }

 private:
  ledger::Input event_of(const std::string& what, const Line& line) {
    if (what == "open") return open(line);
    if (what == "settle") return settle(line);
    if (what == "shares") return shares(line);
    if (what == "skip") return skip(line);
    const Member member = member_of(line.word(0));
    const Generation generation{line.number("gen", generation_of(member))};
    const std::uint64_t phase = line.number("phase", recorder_.ledger().phase().number);
    if (what == "admit") return ledger::MemberAdmitted{member, Generation{line.number("gen", 0)}};
    if (what == "lost") return ledger::MemberLost{member};
    if (what == "left") return ledger::MemberLeft{member};
    if (what == "progress") {
      return ledger::ProgressReported{member, generation, phase, line.number("place", 0)};
    }
    if (what == "recalled") {
      ledger::RecallAnswered recalled{member, generation, line.number("number", 0), phase,
                                      line.number("end", 0)};
      if (line.text("records")) recalled.records = line.number("records", 0);
      return recalled;
    }
    if (what != "fetch") throw std::runtime_error("no event: " + what);
    ledger::FetchRequested fetch{member, generation, line.number("seq", 0), {}};
    fetch.request = {phase, line.number("place", 0), line.number("want", 0), {}};
    fetch.request.late = line.number("late", 0);
    for (const std::string& part : split(line.text("skipped").value_or(""), ',')) {
      const auto parts = split(part, ':');
      fetch.request.skipped.push_back(
          {std::stoull(parts.at(0)), std::stoull(parts.at(1)), parts.at(2)});
    }
    if (line.text("records")) {
      wire::EvalPartial partial;
      partial.records = line.number("records", 0);
      fetch.request.partials.push_back(partial);
    }
    return fetch;
  }

  static ledger::Input open(const Line& line) {
    return ledger::PhaseOpened{std::stoull(line.word(0)),
                               line.word(1) == "train" ? PhaseKind::kTrain : PhaseKind::kEval,
                               Epoch{static_cast<std::uint32_t>(std::stoul(line.word(2)))}};
  }
  static ledger::Input settle(const Line& line) {
    ledger::GenerationSettled settled{Generation{line.number("gen", 0)}, {}, {}};
    for (std::string place : split(line.text("places").value_or(""), ',')) {
      const bool lost = place.back() == '!';
      if (lost) place.pop_back();
      const std::size_t colon = place.find(':');
      settled.places.push_back(
          {member_of(place.substr(0, colon)), std::stoull(place.substr(colon + 1)), lost});
    }
    for (const std::string& member : split(line.text("members").value_or(""), ',')) {
      settled.members.push_back(member_of(member));
    }
    return settled;
  }
  static ledger::Input shares(const Line& line) {
    ledger::SharesPlanned shares;
    for (const Line::Pair& pair : line.pairs()) {
      const auto numbers = split(pair.value, '/');
      shares.shares.push_back({parse_worker_id(pair.name).value(), std::stoull(numbers.at(0)),
                               numbers.size() > 1 ? std::stoull(numbers[1]) : 0});
    }
    return shares;
  }
  ledger::Input skip(const Line& line) {
    const auto ends = split(line.word(0), ':');
    return ledger::SkipDeclared{recorder_.ledger().phase().number,
                                {std::stoull(ends.at(0)), std::stoull(ends.at(1))},
                                line.rest(1)};
  }
  std::uint64_t generation_of(Member member) {
    const auto found = recorder_.ledger().holders().find(member.worker);
    return found == recorder_.ledger().holders().end() ? 0 : found->second.generation.value;
  }

  // ------------------------------------------------------------- what happens

  static std::string show_effect(const ledger::PersistRecord&) { return "persist"; }
  static std::string show_effect(const ledger::SendGrants& e) {
    std::string shown = fmt::format("reply {} {}", show(e.member), e.grants.status);
    if (e.grants.retry_ms > 0) shown += fmt::format(" {} ms", e.grants.retry_ms);
    std::vector<Interval> runs;
    for (const wire::Piece& piece : e.grants.pieces) {
      const Interval at{piece.shard_first + piece.from, piece.shard_first + piece.to};
      if (!runs.empty() && runs.back().to == at.from) {
        runs.back().to = at.to;
      } else {
        runs.push_back(at);
      }
    }
    for (const Interval& run : runs) shown += ' ' + show(run);
    return shown;
  }
  static std::string show_effect(const ledger::SendRefusal& e) {
    return fmt::format("refuse: {}", e.refused.reason);
  }
  static std::string show_effect(const ledger::SendRecall& e) {
    return fmt::format("recall {} number={} keep_to={}", show(e.member), e.number,
                       e.recall.keep_to);
  }
  std::string show_effect(const ledger::EndPhase& e) {
    std::string shown = fmt::format("complete {}", e.phase);
    const std::uint64_t evaluated = recorder_.ledger().evaluation().records;
    return evaluated > 0 ? shown + fmt::format(", {} evaluated", evaluated) : shown;
  }
  static std::string show_effect(const ledger::NoteReturned& e) {
    return fmt::format("returned {} {} retries={}", show(e.member), show(e.range.at),
                       e.range.retries);
  }
  static std::string show_effect(const ledger::StopJob& e) {
    return fmt::format("stop job: {}", e.reason);
  }

  std::vector<std::string> skips() {
    std::vector<std::string> shown;
    for (const EpochAccount& e : recorder_.accounts().epochs()) {
      shown.push_back(fmt::format("epoch {}: {} once, {} skipped, {} lost", e.epoch, e.once,
                                  e.skipped, e.lost));
      for (const auto& [reason, records] : e.skipped_by_program) {
        shown.back() += fmt::format(", {} {}", records, reason);
      }
    }
    return shown;
  }
  std::vector<std::string> state() {
    const Ledger& ledger = recorder_.ledger();
    std::vector<std::string> shown{fmt::format("committed {}, held {}, free {}, skipped {}",
                                               ledger.committed(), ledger.outstanding(),
                                               ledger.ungranted(), ledger.skipped())};
    for (const auto& [worker, holder] : ledger.holders()) {
      if (!holder.active) continue;
      shown.push_back(fmt::format("{} at {} of {}:", show(Member{worker, holder.attempt}),
                                  holder.place, holder.end));
      for (const Range& range : holder.grants) shown.back() += ' ' + show(range.at);
    }
    return shown;
  }

  Recorder recorder_;
};

class LedgerTranscript : public testing::TestWithParam<std::string> {};

TEST_P(LedgerTranscript, HasTheEffectsExpected) {
  transcript::expect_as_written(ANTDT_TRANSCRIPTS, GetParam(), [](const Line& first) {
    return std::make_unique<LedgerScript>(first);
  });
}

INSTANTIATE_TEST_SUITE_P(Ledger, LedgerTranscript,
                         testing::ValuesIn(transcript::scripts_in(ANTDT_TRANSCRIPTS)),
                         [](const auto& name) { return name.param; });

}  // namespace
}  // namespace antdt::shard_server
