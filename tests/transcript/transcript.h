// Text scripts that describe a machine: events, and under each of them, indented by two
// spaces, the effects that must follow.
//
//   # Prose: why this situation matters, and what is about to happen.
//   given joined w0.1 w1.1       an event whose effects are not shown: the way to the subject
//   12s tick                     a line may begin with the time; it holds until the next one
//     unresponsive w1: it was asked to join 60 s ago
//
// The first line that is not a comment describes the machine. The machine's own test explains the
// words of an event, beside its `run`. A word that no code reads is an error, so that a spelling
// mistake cannot make a script say less than it seems to.
//
// A difference is reported at the line of the script, with what was expected and what was found. To
// accept the machines' new behaviour, read the differences, then run the tests with
// ANTDT_ACCEPT_TRANSCRIPTS=1, which writes the files again.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/ids.h"

namespace antdt::transcript {

[[nodiscard]] std::vector<std::string> split(const std::string& text, char by);
// "w0.1" is worker w0, attempt 1. Throws what is no member.
[[nodiscard]] Member member_of(const std::string& text);
[[nodiscard]] std::string show(Member member);
// "w0.1 w1.1", or "nobody" for an empty list.
[[nodiscard]] std::string show(const std::vector<Member>& members);
// "250ms", "1.5s", "2min". Nothing if it is no time.
[[nodiscard]] std::optional<Duration> parse_duration(const std::string& text);

// The words of an event. "name=value" is read by its name, a word without '=' by its index among
// such words. `unread` finds words that no reader has used.
class Line {
 public:
  explicit Line(const std::string& text);

  [[nodiscard]] const std::string& what() const { return what_; }  // the first word
  // Words without '=' behind the first, by index. Throws if there is none.
  [[nodiscard]] const std::string& word(std::size_t place) const;
  [[nodiscard]] std::size_t words() const { return plain_.size(); }
  // The line from that index to its end, as it was written.
  [[nodiscard]] std::string rest(std::size_t place) const;
  // All words, or those from an index on, as members.
  [[nodiscard]] std::vector<Member> members(std::size_t from = 0) const;
  // Whether a word without '=' is there.
  [[nodiscard]] bool has(const std::string& word) const;

  [[nodiscard]] std::optional<std::string> text(const std::string& name) const;
  [[nodiscard]] std::string text(const std::string& name, const std::string& otherwise) const;
  [[nodiscard]] std::uint64_t number(const std::string& name, std::uint64_t otherwise) const;
  [[nodiscard]] double real(const std::string& name, double otherwise) const;
  [[nodiscard]] Duration duration(const std::string& name, Duration otherwise) const;
  // The pairs "NAME=VALUE" that are left, in their order: for lists.
  struct Pair {
    std::string name, value;
  };
  [[nodiscard]] std::vector<Pair> pairs() const;

  [[nodiscard]] std::optional<std::string> unread() const;

 private:
  struct Word {
    std::string text;
    std::size_t at = 0;  // in `line_`
    mutable bool read = false;
  };
  std::string line_, what_;
  std::vector<Word> plain_, named_;
};

// A machine that a script drives. Throws std::exception for an invalid line.
class Machine {
 public:
  virtual ~Machine() = default;
  // The effects, a line each.
  [[nodiscard]] virtual std::vector<std::string> run(const Line& line, MonoTime now) = 0;
};
using MakeMachine = std::function<std::unique_ptr<Machine>(const Line& first)>;

// An event of a script: what is written under it, and what the machine does.
struct Played {
  std::size_t line = 0;  // its number, from 1
  std::string event;
  std::vector<std::string> expected, found;
};
struct Outcome {
  std::string text;  // the script again, each event with the effects that it has now
  std::vector<Played> differences;
  std::size_t events = 0;
};
// Errors of the script are effects that no script expects: "ERROR: ...".
[[nodiscard]] Outcome play(const std::string& script, const MakeMachine& make);

// Names of the scripts of a directory, without ".txt".
[[nodiscard]] std::vector<std::string> scripts_in(const std::string& directory);
// Plays DIRECTORY/NAME.txt; each difference is a failure of the test that runs.
void expect_as_written(const std::string& directory, const std::string& name,
                       const MakeMachine& make);

}  // namespace antdt::transcript
