#include "tests/transcript/transcript.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace antdt::transcript {
namespace {

constexpr std::size_t kDifferencesShown = 5;

double real_of(const std::string& text) {
  std::size_t used = 0;
  double value = 0;
  try {
    value = std::stod(text, &used);
  } catch (const std::logic_error&) {
    used = 0;
  }
  if (used == 0 || used != text.size()) throw std::runtime_error("no number: " + text);
  return value;
}

std::string indented(const std::vector<std::string>& effects) {
  std::string shown;
  for (const std::string& effect : effects) shown += "    " + effect + "\n";
  return shown.empty() ? "    (nothing)\n" : shown;
}

bool is_event(const std::string& line) {
  return !line.empty() && line.front() != '#' && !line.starts_with("  ");
}

// A script while it is played.
class Player {
 public:
  explicit Player(const MakeMachine& make) : make_(make) {}

  std::vector<std::string> run(const std::string& text) {
    try {
      return checked(text);
    } catch (const std::exception& error) {
      return {fmt::format("ERROR: {}", error.what())};
    }
  }

 private:
  std::vector<std::string> checked(std::string text) {
    const auto drop_first_word = [&] {
      const std::size_t end = text.find(' ');
      text = end == std::string::npos ? "" : text.substr(text.find_first_not_of(' ', end));
    };
    if (const auto time = parse_duration(text.substr(0, text.find(' ')))) {
      if (machine_ == nullptr) throw std::runtime_error("the first line describes the machine");
      if (kBegin + *time < now_) throw std::runtime_error("time runs backwards");
      now_ = kBegin + *time;
      drop_first_word();
      if (text.empty()) return {};
    }
    const bool shown = !text.starts_with("given ");
    if (!shown) drop_first_word();
    const Line line(text);
    std::vector<std::string> effects;
    if (machine_ == nullptr) {
      machine_ = make_(line);
    } else {
      effects = machine_->run(line, now_);
    }
    if (const auto word = line.unread()) {
      throw std::runtime_error(fmt::format("'{}' means nothing in this line", *word));
    }
    return shown ? effects : std::vector<std::string>{};
  }

  // Clocks began long before any job.
  static constexpr MonoTime kBegin{std::chrono::hours(1)};
  const MakeMachine& make_;
  std::unique_ptr<Machine> machine_;
  MonoTime now_ = kBegin;
};

}  // namespace

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
  return {*worker, Attempt{static_cast<std::uint32_t>(real_of(text.substr(dot + 1)))}};
}

std::string show(Member member) { return fmt::format("{}.{}", member.worker, member.attempt); }

std::string show(const std::vector<Member>& members) {
  std::string shown;
  for (const Member member : members) shown += (shown.empty() ? "" : " ") + show(member);
  return shown.empty() ? "nobody" : shown;
}

std::optional<Duration> parse_duration(const std::string& text) {
  const std::size_t unit_at = text.find_first_not_of("0123456789.");
  if (unit_at == 0 || unit_at == std::string::npos) return {};
  constexpr std::array<std::pair<const char*, double>, 4> kUnits{
      {{"ms", 0.001}, {"s", 1}, {"min", 60}, {"h", 3600}}};
  for (const auto& [unit, seconds] : kUnits) {
    if (text.substr(unit_at) == unit)
      return from_seconds(real_of(text.substr(0, unit_at)) * seconds);
  }
  return {};
}

// ------------------------------------------------------------------------- words

Line::Line(const std::string& text) : line_(text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, end - at);
    if (what_.empty()) {
      what_ = word;
    } else if (!word.empty()) {
      (word.find('=') == std::string::npos ? plain_ : named_).push_back({word, at});
    }
    at = end + 1;
  }
}

const std::string& Line::word(std::size_t place) const {
  if (place >= plain_.size()) throw std::runtime_error("a word is missing");
  plain_[place].read = true;
  return plain_[place].text;
}

std::string Line::rest(std::size_t place) const {
  if (place >= plain_.size()) return {};
  const std::size_t from = plain_[place].at;
  for (const std::vector<Word>* words : {&plain_, &named_}) {
    for (const Word& word : *words) word.read = word.read || word.at >= from;
  }
  return line_.substr(from);
}

std::vector<Member> Line::members(std::size_t from) const {
  std::vector<Member> members;
  for (std::size_t i = from; i < plain_.size(); ++i) members.push_back(member_of(word(i)));
  return members;
}

bool Line::has(const std::string& word) const {
  const auto found = std::ranges::find(plain_, word, &Word::text);
  if (found == plain_.end()) return false;
  found->read = true;
  return true;
}

std::optional<std::string> Line::text(const std::string& name) const {
  for (const Word& word : named_) {
    if (!word.text.starts_with(name + "=")) continue;
    word.read = true;
    return word.text.substr(name.size() + 1);
  }
  return {};
}

std::string Line::text(const std::string& name, const std::string& otherwise) const {
  return text(name).value_or(otherwise);
}

std::uint64_t Line::number(const std::string& name, std::uint64_t otherwise) const {
  const auto found = text(name);
  return found ? static_cast<std::uint64_t>(real_of(*found)) : otherwise;
}

double Line::real(const std::string& name, double otherwise) const {
  const auto found = text(name);
  return found ? real_of(*found) : otherwise;
}

Duration Line::duration(const std::string& name, Duration otherwise) const {
  const auto found = text(name);
  if (!found) return otherwise;
  const auto parsed = parse_duration(*found);
  if (!parsed) throw std::runtime_error("no time: " + *found);
  return *parsed;
}

std::vector<Line::Pair> Line::pairs() const {
  std::vector<Pair> pairs;
  for (const Word& word : named_) {
    if (std::exchange(word.read, true)) continue;
    const std::size_t equals = word.text.find('=');
    pairs.push_back({word.text.substr(0, equals), word.text.substr(equals + 1)});
  }
  return pairs;
}

std::optional<std::string> Line::unread() const {
  for (const std::vector<Word>* words : {&plain_, &named_}) {
    const auto found = std::ranges::find(*words, false, &Word::read);
    if (found != words->end()) return found->text;
  }
  return {};
}

// ----------------------------------------------------------------------- scripts

Outcome play(const std::string& script, const MakeMachine& make) {
  Outcome outcome;
  Player player(make);
  std::istringstream in(script);
  std::optional<Played> open;
  const auto close = [&] {
    if (open && open->expected != open->found) outcome.differences.push_back(*open);
    open.reset();
  };
  std::size_t number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (line.starts_with("  ")) {
      if (open) open->expected.push_back(line.substr(2));
      if (!open) outcome.differences.push_back({number, "(no event)", {line.substr(2)}, {}});
      continue;
    }
    close();
    outcome.text += line + '\n';
    if (!is_event(line)) continue;
    ++outcome.events;
    open = Played{number, line, {}, player.run(line)};
    for (const std::string& effect : open->found) outcome.text += "  " + effect + '\n';
  }
  close();
  return outcome;
}

std::vector<std::string> scripts_in(const std::string& directory) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (entry.path().extension() == ".txt") names.push_back(entry.path().stem());
  }
  std::ranges::sort(names);
  return names;
}

void expect_as_written(const std::string& directory, const std::string& name,
                       const MakeMachine& make) {
  const std::string path = directory + "/" + name + ".txt";
  std::ostringstream script;
  script << std::ifstream(path).rdbuf();
  const Outcome outcome = play(script.str(), make);
  EXPECT_GT(outcome.events, 1U) << path << " describes nothing";
  if (std::getenv("ANTDT_ACCEPT_TRANSCRIPTS") != nullptr) {
    std::ofstream(path) << outcome.text;
    return;
  }
  std::size_t shown = 0;
  for (const Played& played : outcome.differences) {
    if (++shown > kDifferencesShown) {
      ADD_FAILURE() << outcome.differences.size() - kDifferencesShown << " more in " << path;
      break;
    }
    ADD_FAILURE_AT(path.c_str(), static_cast<int>(played.line))
        << played.event << "\n  expected:\n"
        << indented(played.expected) << "  found:\n"
        << indented(played.found);
  }
}

}  // namespace antdt::transcript
