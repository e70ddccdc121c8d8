#include "ctl/job/observers/verdict_watch.h"

#include <fmt/format.h>

#include <utility>

namespace antdt::ctl {
namespace {

// If thousands of workers become slow at once, only some are reported; the status lists all of
// them.
constexpr std::size_t kMostAtOnce = 8;

}  // namespace

bool is_straggler(const Verdict& verdict) {
  return verdict.kind != VerdictKind::kNone && verdict.kind != VerdictKind::kLeader;
}

std::string verdict_text(const Verdict& verdict) {
  if (verdict.kind == VerdictKind::kNone) return "ok";
  if (!is_straggler(verdict)) return fmt::format("leader, {:.1f}x faster", 1 / verdict.severity);
  return fmt::format("{} straggler, {:.1f}x slower ({})", to_string(verdict.kind), verdict.severity,
                     to_string(verdict.cause));
}

template <class View>
void VerdictWatch::look(const View& process, const ClusterView& view, MonoTime now,
                        std::map<Member, Watched>& next, std::vector<std::string>& news) {
  const Member& who = process.member;
  const Verdict& verdict = process.verdict;
  const auto known = watched_.find(who);
  if (!process.measured) {
    if (known != watched_.end()) next.insert(watched_.extract(known));
    return;
  }
  if (!is_straggler(verdict) && known == watched_.end()) return;
  Watched watched = known == watched_.end() ? Watched{} : std::move(known->second);
  const Name name = is_straggler(verdict) ? Name{verdict.kind, verdict.cause} : Name{};
  const bool stays = std::exchange(watched.seen, name) == name;
  std::erase_if(watched.told_at,
                [&](const auto& entry) { return now - entry.second >= view.persistent_window; });
  if (stays && name != watched.told && name == Name{}) {
    news.push_back(fmt::format("{} is as fast as the others again", who.worker));
    watched.told = name;
  } else if (stays && name != watched.told && watched.told_at.emplace(name, now).second) {
    news.push_back(fmt::format("{} on {} is a {}{}{}", who.worker, process.host,
                               verdict_text(verdict), verdict.seen.empty() ? "" : ": ",
                               verdict.seen));
    watched.told = name;
  }
  const bool over = name == Name{} && watched.told == Name{} && watched.told_at.empty();
  if (!over) next.emplace(who, std::move(watched));
}

std::vector<std::string> VerdictWatch::look(const ClusterView& view, MonoTime now) {
  std::vector<std::string> news;
  std::map<Member, Watched> next;
  for (const ServerView& s : view.servers) look(s, view, now, next, news);
  for (const WorkerView& w : view.workers) look(w, view, now, next, news);
  watched_ = std::move(next);
  if (news.size() > kMostAtOnce) {
    const std::size_t more = news.size() - kMostAtOnce;
    news.resize(kMostAtOnce);
    news.push_back(fmt::format("{} verdicts more; antdt status has them all", more));
  }
  return news;
}

}  // namespace antdt::ctl
