#include "antdtd/users/admin_desk.h"

#include <utility>

namespace antdt::antdtd {

std::uint64_t AdminDesk::ask(Waiting waiting) {
  if (waiting_.size() >= kMost) waiting_.erase(waiting_.begin());
  waiting_[++last_] = std::move(waiting);
  return last_;
}

std::optional<AdminDesk::Waiting> AdminDesk::take(std::uint64_t number, const std::string& job) {
  const auto found = waiting_.find(number);
  if (found == waiting_.end() || found->second.job != job) return std::nullopt;
  Waiting waiting = std::move(found->second);
  waiting_.erase(found);
  return waiting;
}

}  // namespace antdt::antdtd
