#include "launcher/commands/top/asker.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <numeric>
#include <thread>
#include <utility>

#include "core/os/owned_fd.h"
#include "core/wire/operator_messages.h"
#include "launcher/commands/operate/running_job.h"
#include "launcher/commands/show/runs.h"
#include "launcher/commands/show/standing_run.h"
#include "launcher/start/admin_link.h"
#include "launcher/start/paths.h"

namespace antdt::cli {
namespace {

using launcher::top::Evict;
using launcher::top::Seen;

constexpr Duration kBetween = std::chrono::seconds(1);
constexpr Duration kOneAnswer = std::chrono::seconds(1);
constexpr Duration kGoodbye = std::chrono::seconds(2);  // for the thread to end
constexpr Duration kOrderPatience = std::chrono::seconds(5);
constexpr std::uint32_t kEvictedWithinMs = 30'000;  // as antdt evict

// The jobs and hosts with which this thread speaks. A link that fails is opened anew.
class Links {
 public:
  explicit Links(AskerOptions options) : options_(std::move(options)) {}

  Seen ask() {
    Seen seen;
    for (const KnownRun& run : known_runs(pending_)) {
      if (run.state == RunState::kRunning) seen.jobs.push_back(ask_job(run));
    }
    std::erase_if(jobs_, [&](const auto& job) {
      return std::ranges::none_of(seen.jobs,
                                  [&](const auto& now) { return now.run_dir == job.first; });
    });
    for (const std::string& host : options_.hosts) seen.hosts.push_back(ask_host(host));
    return seen;
  }

  std::string evict(const Evict& order) {
    auto job = reach(order.run_dir);
    if (!job) return job.error().message;
    wire::EvictWorkers evict;
    evict.target = order.worker;
    evict.reason = "antdt top";
    evict.who = operator_name();
    evict.deadline_ms = kEvictedWithinMs;
    const Status done = job->link.order(evict, kOrderPatience);
    return done ? fmt::format("{} leaves after its step", order.worker) : done.error().message;
  }

 private:
  struct Job {
    std::optional<RunningJob> link;
    std::optional<report::Status> last;
  };

  launcher::top::JobSeen ask_job(const KnownRun& run) {
    Job& job = jobs_[run.run_dir];
    launcher::top::JobSeen seen{.run_dir = run.run_dir, .job = run.job};
    if (const Status answered = ask_status(run, job); !answered) {
      job.link.reset();
      seen.trouble = answered.error().message;
    }
    seen.status = job.last;
    return seen;
  }

  static Status ask_status(const KnownRun& run, Job& job) {
    if (!job.link) {
      ANTDT_TRY(RunningJob link,
                run.trouble.empty()
                    ? reach(run.run_dir)
                    : reach_without_files(run.run_dir, {ErrorKind::kUnreachable, run.trouble}));
      job.link.emplace(std::move(link));
    }
    ANTDT_TRY(const auto answer, job.link->link.status(0, kOneAnswer));
    ANTDT_TRY(job.last, launcher::parse_status(answer.status_json));
    return {};
  }

  launcher::top::HostSeen ask_host(const std::string& address) {
    launcher::top::HostSeen seen{.address = address};
    const auto answer = [&]() -> Result<wire::JobsReply> {
      auto link = hosts_.find(address);
      if (link == hosts_.end()) {
        ANTDT_TRY(auto opened, launcher::AdminLink::open(
                                   context_, address, launcher::absolute_path(options_.keys, ".")));
        link = hosts_.emplace(address, std::move(opened)).first;
      }
      return link->second.jobs(kOneAnswer);
    }();
    if (!answer) {
      hosts_.erase(address);
      seen.trouble = answer.error().message;
      return seen;
    }
    const auto processes = std::accumulate(
        answer->jobs.begin(), answer->jobs.end(), std::uint64_t{0},
        [](std::uint64_t sum, const wire::JobHere& job) { return sum + job.processes; });
    seen.said = fmt::format("{} processes of {} jobs", processes, answer->jobs.size());
    if (answer->drain) seen.said += ", drained " + wire::to_text(*answer->drain);
    return seen;
  }

  AskerOptions options_;
  transport::Context context_;
  std::shared_ptr<PendingLooks> pending_ = std::make_shared<PendingLooks>();
  std::map<std::string, Job> jobs_;  // by run directory
  std::map<std::string, launcher::AdminLink> hosts_;
};

}  // namespace

struct Asker::Shared {
  std::mutex mutex;
  std::condition_variable changed;
  bool over = false;  // the thread is to end
  bool gone = false;  // it has
  std::vector<Evict> orders;
  std::vector<launcher::top::Input> news;
  OwnedFd ready{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};

  void tell(launcher::top::Input input) {
    const std::lock_guard lock(mutex);
    news.push_back(std::move(input));
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(ready.get(), &one, sizeof one);
  }

  void run(AskerOptions options) {
    ask_on(Links(std::move(options)));
    const std::lock_guard lock(mutex);
    gone = true;
    changed.notify_all();
  }

 private:
  void ask_on(Links links) {
    while (true) {
      tell(launcher::top::Heard{links.ask()});
      std::vector<Evict> now;
      {
        std::unique_lock lock(mutex);
        changed.wait_for(lock, kBetween, [this] { return over || !orders.empty(); });
        if (over) return;
        now.swap(orders);
      }
      for (const Evict& order : now) tell(launcher::top::Told{links.evict(order)});
    }
  }
};

Asker::Asker(AskerOptions options) : shared_(std::make_shared<Shared>()) {
  std::thread([shared = shared_, options = std::move(options)]() mutable {
    shared->run(std::move(options));
  }).detach();
}

Asker::~Asker() {
  std::unique_lock lock(shared_->mutex);
  shared_->over = true;
  shared_->changed.notify_all();
  shared_->changed.wait_for(lock, kGoodbye, [this] { return shared_->gone; });
}

int Asker::news() const { return shared_->ready.get(); }

std::vector<launcher::top::Input> Asker::take() {
  const std::lock_guard lock(shared_->mutex);
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = ::read(shared_->ready.get(), &count, sizeof count);
  return std::exchange(shared_->news, {});
}

bool Asker::wait(Duration patience) const {
  pollfd fd{shared_->ready.get(), POLLIN, 0};
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(patience).count();
  return ::poll(&fd, 1, static_cast<int>(ms)) > 0;
}

void Asker::order(const Evict& evict) {
  const std::lock_guard lock(shared_->mutex);
  shared_->orders.push_back(evict);
  shared_->changed.notify_one();
}

}  // namespace antdt::cli
