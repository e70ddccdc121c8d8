#include "jobd/monitoring/metrics_desk.h"

#include <utility>

#include "core/metrics/exposition.h"
#include "ctl/job/metrics/job_metrics.h"
#include "jobd/shell.h"

namespace antdt::jobd {
namespace {

constexpr auto kListenAgain = std::chrono::seconds(5);

}  // namespace

Status MetricsDesk::listen() {
  if (shell_.config.metrics.listen.empty()) return {};
  const Status listening = try_to_listen();
  if (listening) return {};
  if (!shell_.options.is_restart) {
    return fail(ErrorKind::kUsage, "metrics.listen: {}; or remove the line",
                listening.error().message);
  }
  shell_.note("metrics", fmt::format("{}; the job goes on without, and tries again every {} s",
                                     listening.error().message, kListenAgain.count()));
  try_again_ = shell_.loop.now() + kListenAgain;
  return {};
}

void MetricsDesk::tick() {
  if (server_ || shell_.loop.now() < try_again_) return;
  try_again_ = shell_.loop.now() + kListenAgain;
  static_cast<void>(try_to_listen());
}

Status MetricsDesk::try_to_listen() {
  auto server = metrics::MetricsServer::listen(shell_.loop, shell_.config.metrics.listen,
                                               [this] { return text(); });
  if (!server) return tl::unexpected(server.error());
  server_ = std::move(*server);
  shell_.note("metrics", fmt::format("metrics are at http://{}/metrics", server_->address()));
  return {};
}

std::string MetricsDesk::text() {
  const ctl::JobReport report = shell_.report();
  past_.see(report);
  return metrics::to_text(ctl::job_metrics(
      report, past_,
      {shell_.options.version, shell_.events.counts(), shell_.turns.commit_times()}));
}

}  // namespace antdt::jobd
