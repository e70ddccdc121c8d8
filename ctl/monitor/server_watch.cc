#include "ctl/monitor/server_watch.h"

#include <algorithm>

namespace antdt::ctl {
namespace {

constexpr std::size_t kBuckets = 48;

// Of the others that do the same; nothing where there is none, or one is not known.
std::optional<double> mean_of_others(const std::vector<ServerView>& all, const ServerView& own,
                                     double ServerView::*time) {
  double sum = 0;
  int count = 0;
  for (const ServerView& other : all) {
    if (other.member == own.member || other.role != own.role) continue;
    if (!other.measured) return std::nullopt;
    sum += other.*time;
    ++count;
  }
  return count == 0 || sum <= 0 ? std::nullopt : std::optional(sum / count);
}

}  // namespace

ServerWatch::ServerWatch(const MonitorConfig& config)
    : config_(config), recent_(std::max(config.transient_window, kLeastWindow)) {}

void ServerWatch::set_servers(const std::vector<ServerInfo>& servers) {
  std::map<WorkerId, Server> now;
  for (const ServerInfo& info : servers) {
    const auto known = servers_.find(info.member.worker);
    const bool stays = known != servers_.end() && known->second.info.member == info.member &&
                       known->second.info.role == info.role;
    if (stays) {
      now.insert(servers_.extract(known));
    } else {
      const Duration span = std::max(config_.persistent_window, recent_);
      now.emplace(info.member.worker, Server{info, SlidingWindow(span, kBuckets)});
    }
  }
  servers_ = std::move(now);
}

void ServerWatch::step(Member server, std::uint64_t requests, std::uint64_t busy_us, MonoTime now) {
  const auto found = servers_.find(server.worker);
  if (found == servers_.end() || found->second.info.member != server) return;
  Server& s = found->second;
  const std::optional<Said> before = std::exchange(s.said, Said{requests, busy_us, now});
  if (!before || requests <= before->requests || busy_us < before->busy_us) return;
  BatchSums sums;
  sums.batches = requests - before->requests;
  sums.compute_us = busy_us - before->busy_us;
  const Duration idle = now - before->when - std::chrono::microseconds(sums.compute_us);
  sums.wait_us =
      static_cast<std::uint64_t>(std::max(Duration{}, idle) / std::chrono::microseconds(1));
  s.window.add(sums, now);
  if (!s.first) s.first = now;
}

ServerView ServerWatch::measure(const Server& server, MonoTime now) const {
  ServerView view;
  view.member = server.info.member;
  view.host = server.info.host;
  view.role = server.info.role;
  const BatchSums recent = server.window.sum(recent_, now);
  const BatchSums lasting = server.window.sum(config_.persistent_window, now);
  if (recent.batches < kLeastRequests || lasting.batches < kLeastRequests) return view;
  const auto mean = [](const BatchSums& sums) {
    return static_cast<double>(sums.compute_us) / static_cast<double>(sums.batches);
  };
  view.measured = true;
  view.service_us = mean(recent);
  view.service_us_persistent = mean(lasting);
  view.busy_share = static_cast<double>(recent.compute_us) /
                    static_cast<double>(recent.compute_us + recent.wait_us);
  return view;
}

void ServerWatch::judge(Server& server, ServerView& own, const std::vector<ServerView>& all,
                        MonoTime now) const {
  const auto others =
      own.measured ? mean_of_others(all, own, &ServerView::service_us) : std::optional<double>();
  const double ratio = others ? own.service_us / *others : 1;
  if (ratio <= config_.release_ratio) server.slow_since.reset();
  if (ratio > config_.straggler_ratio && !server.slow_since) server.slow_since = now;
  if (!server.slow_since) return;
  Verdict& verdict = own.verdict;
  verdict.severity = ratio;
  verdict.since = *server.slow_since;
  verdict.kind = VerdictKind::kTransient;
  if (now - *server.slow_since < config_.persistent_window) return;
  // Slow from the first: it had no time to be anything else.
  const bool always = *server.slow_since - *server.first <= recent_;
  verdict.kind = always ? VerdictKind::kDeterministic : VerdictKind::kPersistent;
  const auto lasting = mean_of_others(all, own, &ServerView::service_us_persistent);
  if (lasting) verdict.severity = own.service_us_persistent / *lasting;
}

std::vector<ServerView> ServerWatch::view(MonoTime now) {
  std::vector<ServerView> views;
  for (const auto& [id, server] : servers_) views.push_back(measure(server, now));
  std::vector<ServerView> judged = views;
  auto own = judged.begin();
  for (auto& [id, server] : servers_) judge(server, *own++, views, now);
  return judged;
}

}  // namespace antdt::ctl
