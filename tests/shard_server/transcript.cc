#include "transcript.h"

#include <optional>
#include <sstream>
#include <stdexcept>

#include "recorder.h"

namespace antdt::shard_server {
namespace {

std::vector<std::string> split(const std::string& text, char by) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, by);) {
    if (!part.empty()) parts.push_back(part);
  }
  return parts;
}

Member member_of(const std::string& text) {
  const std::size_t dot = text.find('.');
  const auto worker = parse_worker_id(text.substr(0, dot));
  if (!worker || dot == std::string::npos) throw std::runtime_error("no member: " + text);
  return {*worker, Attempt{static_cast<std::uint32_t>(std::stoul(text.substr(dot + 1)))}};
}
std::string show(Member member) { return fmt::format("{}.{}", member.worker, member.attempt); }
std::string show(Interval at) { return fmt::format("{}:{}", at.from, at.to); }

// The words of a line; those with '=' by name.
class Line {
 public:
  explicit Line(const std::string& text) : words_(split(text, ' ')) {}
  [[nodiscard]] const std::string& word(std::size_t i) const { return words_.at(i); }
  [[nodiscard]] const std::vector<std::string>& words() const { return words_; }
  [[nodiscard]] std::optional<std::string> text(const std::string& name) const {
    for (const std::string& word : words_) {
      if (word.rfind(name + "=", 0) == 0) return word.substr(name.size() + 1);
    }
    return {};
  }
  [[nodiscard]] std::uint64_t number(const std::string& name, std::uint64_t otherwise) const {
    const auto found = text(name);
    return found ? std::stoull(*found) : otherwise;
  }

 private:
  std::vector<std::string> words_;
};

LedgerConfig config_of(const Line& line) {
  LedgerConfig config;
  config.train = {line.number("records", 0), line.number("shard", 100), Shuffle::kNone, 0};
  config.eval = {line.number("eval", 0), line.number("shard", 100), Shuffle::kNone, 0};
  config.drops_late = line.number("drop", 0) != 0;
  config.retry_limit = static_cast<std::uint32_t>(line.number("limit", 10));
  return config;
}

class Script {
 public:
  explicit Script(const Line& data) : recorder_(config_of(data)) {}

  std::string run(const std::string& text) {
    const Line line(text);
    const std::string& what = line.word(0);
    if (what == "at") {
      now_ = MonoTime(std::chrono::milliseconds(std::stoll(line.word(1))));
      return {};
    }
    if (what == "restart") {
      recorder_.restart();
      return {};
    }
    if (what == "state") return state();
    std::string shown;
    for (const Effect& effect : recorder_.step(event_of(what, line), now_)) {
      shown += "  " + std::visit([this](const auto& e) { return this->show_effect(e); }, effect);
      shown += '\n';
    }
    // Whoever comes back from the journal is where this one is.
    if (recorder_.replayed().image() != recorder_.ledger().image()) shown += "  REPLAY DIFFERS\n";
    return shown;
  }

 private:
  Event event_of(const std::string& what, const Line& line) {
    if (what == "open") return open(line);
    if (what == "settle") return settle(line);
    if (what == "shares") return shares(line);
    if (what == "skip") return skip(line);
    const Member member = member_of(line.word(1));
    const Generation generation{line.number("gen", generation_of(member))};
    const std::uint64_t phase = line.number("phase", recorder_.ledger().phase().number);
    if (what == "admit") return event::MemberAdmitted{member, Generation{line.number("gen", 0)}};
    if (what == "lost") return event::MemberLost{member};
    if (what == "left") return event::MemberLeft{member};
    if (what == "progress") {
      return event::Progress{member, generation, phase, line.number("place", 0)};
    }
    if (what == "recalled") {
      event::Recalled recalled{member, generation, line.number("number", 0), phase,
                               line.number("end", 0)};
      if (line.text("records")) recalled.records = line.number("records", 0);
      return recalled;
    }
    if (what != "fetch") throw std::runtime_error("no event: " + what);
    event::Fetch fetch{member, generation, line.number("seq", 0), {}};
    fetch.request = {phase, line.number("place", 0), line.number("want", 0), {}};
    fetch.request.late = line.number("late", 0);
    if (line.text("records")) {
      wire::EvalPartial partial;
      partial.records = line.number("records", 0);
      fetch.request.partials.push_back(partial);
    }
    return fetch;
  }

  static Event open(const Line& line) {
    return event::PhaseOpened{std::stoull(line.word(1)),
                              line.word(2) == "train" ? PhaseKind::kTrain : PhaseKind::kEval,
                              Epoch{static_cast<std::uint32_t>(std::stoul(line.word(3)))}};
  }
  static Event settle(const Line& line) {
    event::Settled settled{Generation{line.number("gen", 0)}, {}, {}};
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
  static Event shares(const Line& line) {
    event::Shares shares;
    for (std::size_t i = 1; i < line.words().size(); ++i) {
      const auto name_and_value = split(line.word(i), '=');
      const auto numbers = split(name_and_value.at(1), '/');
      shares.shares.push_back({*parse_worker_id(name_and_value[0]), std::stoull(numbers.at(0)),
                               numbers.size() > 1 ? std::stoull(numbers[1]) : 0});
    }
    return shares;
  }
  Event skip(const Line& line) {
    const auto ends = split(line.word(1), ':');
    std::string reason;
    for (std::size_t i = 2; i < line.words().size(); ++i) reason += line.word(i) + ' ';
    return event::SkipDeclared{recorder_.ledger().phase().number,
                               {std::stoull(ends.at(0)), std::stoull(ends.at(1))},
                               reason};
  }
  std::uint64_t generation_of(Member member) {
    const auto found = recorder_.ledger().holders().find(member.worker);
    return found == recorder_.ledger().holders().end() ? 0 : found->second.generation.value;
  }

  // ------------------------------------------------------------- what happens

  static std::string show_effect(const effect::Persist&) { return "persist"; }
  static std::string show_effect(const effect::Reply& e) {
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
  static std::string show_effect(const effect::Refuse& e) {
    return fmt::format("refuse: {}", e.refused.reason);
  }
  static std::string show_effect(const effect::SendRecall& e) {
    return fmt::format("recall {} number={} keep_to={}", show(e.member), e.number,
                       e.recall.keep_to);
  }
  std::string show_effect(const effect::PhaseComplete& e) {
    std::string shown = fmt::format("complete {}", e.phase);
    const std::uint64_t evaluated = recorder_.ledger().evaluation().records;
    return evaluated > 0 ? shown + fmt::format(", {} evaluated", evaluated) : shown;
  }
  static std::string show_effect(const effect::Returned& e) {
    return fmt::format("returned {} {} retries={}", show(e.member), show(e.range.at),
                       e.range.retries);
  }
  static std::string show_effect(const effect::StopJob& e) {
    return fmt::format("stop job: {}", e.reason);
  }

  std::string state() {
    const Ledger& ledger = recorder_.ledger();
    std::string shown =
        fmt::format("  committed {}, in hand {}, free {}, skipped {}\n", ledger.committed(),
                    ledger.outstanding(), ledger.ungranted(), ledger.skipped());
    for (const auto& [worker, holder] : ledger.holders()) {
      if (!holder.active) continue;
      shown += fmt::format("  {} at {} of {}:", show(Member{worker, holder.attempt}), holder.place,
                           holder.end);
      for (const Range& range : holder.grants) shown += ' ' + show(range.at);
      shown += '\n';
    }
    return shown;
  }

  Recorder recorder_;
  MonoTime now_{};
};

}  // namespace

std::string run_transcript(const std::string& script) {
  std::istringstream in(script);
  std::string out;
  std::optional<Script> running;
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("  ", 0) == 0) continue;  // effects of an earlier run
    out += line + '\n';
    if (line.empty() || line[0] == '#') continue;
    if (running) {
      out += running->run(line);
    } else {
      running.emplace(Line(line));
    }
  }
  return out;
}

}  // namespace antdt::shard_server
