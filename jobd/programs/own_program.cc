#include "jobd/programs/own_program.h"

#include <algorithm>
#include <utility>

#include "core/overloaded.h"
#include "ctl/job/solution_lines.h"

namespace antdt::jobd {

namespace program = ctl::program;

namespace {

constexpr std::size_t kChunk = 65'536;
constexpr Duration kWriteAgain = std::chrono::milliseconds(10);
constexpr std::size_t kLastWords = 200;
constexpr Duration kUntilItsEnd = std::chrono::seconds(1);

// The last line that is not empty, made printable.
std::string last_line(std::string_view text) {
  const std::size_t end = text.find_last_not_of("\r\n\t ");
  if (end == std::string_view::npos) return {};
  const std::size_t begin = text.find_last_of('\n', end);
  std::string line(text.substr(begin == std::string_view::npos ? 0 : begin + 1));
  line.resize(std::min(line.find_last_not_of("\r\n\t ") + 1, kLastWords));
  std::ranges::replace_if(
      line, [](unsigned char c) { return c < 0x20 || c > 0x7e; }, '?');
  return line;
}

}  // namespace

OwnProgram::OwnProgram(EventLoop& loop, Options options, OnDecision on_decision, OnNews on_news)
    : loop_(loop),
      options_(std::move(options)),
      on_decision_(std::move(on_decision)),
      on_news_(std::move(on_news)) {}

OwnProgram::~OwnProgram() { end(); }

void OwnProgram::tell(const program::Input& input) {
  program::Effects wanted;
  watch_.step(input, loop_.now(), wanted);
  const Overloaded perform{[this](const program::StartProgram&) { start(); },
                           [this](const program::EndProgram&) { end(); },
                           [this](const program::TellOperator& e) { on_news_(e.text); }};
  for (const program::Effect& effect : wanted) std::visit(perform, effect);
}

void OwnProgram::start() {
  last_words_.clear();
  number_ = 0;
  auto child = ChildProgram::start(options_.command, options_.directory);
  if (!child) return failed(fmt::format("does not start: {}", child.error().message));
  child_.emplace(std::move(*child));
  tell(program::ProgramStarted{});
}

void OwnProgram::end() {
  unwatch();
  if (child_) dying_.push_back(child_->pid());
  closed_.reset();
  child_.reset();
  view_.reset();
  to_write_.clear();
  heard_.clear();
}

void OwnProgram::unwatch() {
  if (std::exchange(watched_, false)) loop_.unwatch_fd(child_->output());
}

// How the program ended says more, and is known in a moment.
void OwnProgram::closed(const char* what) {
  unwatch();
  to_write_.clear();
  if (closed_) return;
  closed_ = loop_.now();
  closed_what_ = fmt::format("has closed its standard {}", what);
}

void OwnProgram::failed(const std::string& why) {
  copy_errors();
  tell(
      program::ProgramFailed{last_words_.empty() ? why : fmt::format("{} ({})", why, last_words_)});
}

void OwnProgram::tick() {
  std::erase_if(dying_, reaped);
  copy_errors();
  if (child_) {
    if (const auto how = child_->ended()) failed(*how);
    if (closed_ && loop_.now() - *closed_ >= kUntilItsEnd) failed(closed_what_);
  }
  tell(program::TimePassed{});
}

void OwnProgram::offer(const ctl::ClusterView& view, double time_s) {
  if (!child_ || !watch_.may_be_asked()) return;
  view_ = view;
  to_write_ = ctl::view_line(view, ++number_, time_s, loop_.now()) + "\n";
  heard_.clear();
  loop_.watch_fd(child_->output(), [this] { read(); });
  watched_ = true;
  tell(program::ViewShown{});
  write();
}

// A view that is larger than the pipe is written in several parts.
void OwnProgram::write() {
  if (!child_ || to_write_.empty()) return;
  const auto put = child_->write(to_write_);
  if (!put) return closed("input");
  to_write_.erase(0, *put);
  if (!to_write_.empty()) loop_.call_after(kWriteAgain, [this] { write(); });
}

void OwnProgram::read() {
  if (!child_ || !view_) return;
  auto got = child_->read_output(kChunk);
  if (!got) return closed("output");
  heard_ += *got;
  const std::size_t end = heard_.find('\n');
  if (end == std::string::npos) {
    if (heard_.size() <= ctl::longest_decision(*view_)) return;
    return failed(
        fmt::format("said more than {} bytes on one line", ctl::longest_decision(*view_)));
  }
  if (end + 1 < heard_.size()) return failed("said more than one line to one view");
  conclude(std::string_view(heard_).substr(0, end));
}

void OwnProgram::conclude(std::string_view line) {
  auto decision = ctl::parse_decision(line, *view_, number_);
  if (!decision) return failed(decision.error().message);
  const PlanVersion plan = view_->plan;
  unwatch();
  view_.reset();
  tell(program::DecisionHeard{});
  if (!decision->actions.empty()) on_decision_(std::move(*decision), plan);
}

void OwnProgram::copy_errors() {
  if (!child_) return;
  const std::string words = child_->read_errors(kChunk);
  if (words.empty()) return;
  if (std::string line = last_line(words); !line.empty()) last_words_ = std::move(line);
  options_.write_log(words);
}

}  // namespace antdt::jobd
