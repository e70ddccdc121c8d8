#include "jobd/monitoring/hook_desk.h"

#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "core/log/log.h"
#include "jobd/shell.h"

namespace antdt::jobd {
namespace {

// The event with what a program that knows nothing of the run needs: an object on one line.
std::string line_of(const ctl::HookQueue::Call& call, const std::string& job,
                    const std::string& run_dir) {
  using nlohmann::json;
  const auto quoted = [](const std::string& text) {
    return json(text).dump(-1, ' ', false, json::error_handler_t::replace);
  };
  return fmt::format(R"({{"job":{},"run_dir":{},"missed":{},{})", quoted(job), quoted(run_dir),
                     call.missed, call.event.substr(1)) +
         "\n";
}

}  // namespace

HookDesk::HookDesk(Shell& shell)
    : shell_(shell),
      log_(std::make_shared<RotatingFile>(shell.options.run_dir + "/hooks.log", kLogBytes)) {}

void HookDesk::offer(const std::string& kind, const std::string& event) {
  if (ctl::is_for_hooks(kind, shell_.machine.lifecycle().state())) queue_.offer(event);
}

void HookDesk::tick() {
  std::erase_if(dying_, reaped);
  if (hook_) {
    if (const auto how = hook_->tick([this](const std::string& words) { write_log(words); })) {
      end(*how);
    } else if (queue_.overdue(shell_.loop.now())) {
      dying_.push_back(hook_->pid());
      end(fmt::format("was ended because it took longer than {} s",
                      std::chrono::floor<std::chrono::seconds>(ctl::HookQueue::kPatience).count()));
    }
  }
  if (const auto call = queue_.next(shell_.loop.now())) start(*call);
  if (then_ && queue_.idle()) std::exchange(then_, nullptr)();
}

void HookDesk::when_done(std::function<void()> then) {
  if (queue_.idle()) return then();
  then_ = std::move(then);
}

void HookDesk::start(const ctl::HookQueue::Call& call) {
  if (call.missed > 0) log_warn("the hook was not told of {} events: it is too slow", call.missed);
  auto hook = EventHook::start(shell_.config.hooks.event, shell_.config.job.directory,
                               line_of(call, shell_.config.job.id, shell_.options.run_dir));
  if (!hook) return end(fmt::format("does not start: {}", hook.error().message));
  hook_ = std::move(*hook);
}

// `how` is empty if all is well.
void HookDesk::end(const std::string& how) {
  hook_.reset();
  queue_.hook_ended();
  if (how.empty()) {
    failed_ = false;
    return;
  }
  log_warn("the hook {}", how);
  // The summary of an ended job is the last of its files.
  if (std::exchange(failed_, true) || shell_.ended) return;
  shell_.note("hook", fmt::format("the program of [hooks] event {}: the event was not told as it "
                                  "should be, and the job goes on; what the program wrote is in "
                                  "{}/hooks.log",
                                  how, shell_.options.run_dir));
}

void HookDesk::write_log(const std::string& words) {
  std::ignore = shell_.disks.records().offer("writing hooks.log", [log = log_, words] {
    if (const Status written = log->append(words); !written) {
      log_warn("{}", written.error().message);
    }
    return DiskThread::Then();
  });
}

}  // namespace antdt::jobd
