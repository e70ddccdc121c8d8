#include "jobd/monitoring/event_hook.h"

#include <utility>

namespace antdt::jobd {
namespace {

constexpr std::size_t kMostWords = 65'536;

}  // namespace

Result<std::unique_ptr<EventHook>> EventHook::start(const std::vector<std::string>& command,
                                                    const std::string& directory,
                                                    std::string line) {
  ANTDT_TRY(ChildProgram child, ChildProgram::start(command, directory));
  std::unique_ptr<EventHook> hook(new EventHook(std::move(child), std::move(line)));
  hook->write();
  return hook;
}

// An event that is larger than the pipe is written in several parts. A program that does not read
// it is no failure.
void EventHook::write() {
  if (!open_) return;
  const auto put = child_.write(to_write_);
  if (put) to_write_.erase(0, *put);
  if (put && !to_write_.empty()) return;
  child_.close_input();
  open_ = false;
}

std::optional<std::string> EventHook::tick(const WriteLog& write_log) {
  write();
  // Asked before its last words are read, so that they are all there.
  const std::optional<std::string> ended = child_.ended();
  std::string words = child_.read_output(kMostWords).value_or("");
  words += child_.read_errors(kMostWords);
  if (!words.empty()) write_log(words);
  if (!ended) return std::nullopt;
  return *ended == "ended with code 0" ? "" : *ended;
}

}  // namespace antdt::jobd
