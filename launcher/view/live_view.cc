#include "launcher/view/live_view.h"

#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <deque>
#include <map>
#include <optional>
#include <thread>
#include <vector>

#include "core/loop.h"
#include "core/os/fs.h"
#include "core/os/process.h"
#include "core/wire/operator_messages.h"
#include "core/wire/packet.h"
#include "launcher/start/leftovers.h"
#include "launcher/start/start.h"
#include "launcher/view/status_view.h"

namespace antdt::launcher {

namespace {

constexpr Duration kTick = std::chrono::milliseconds(100);
constexpr Duration kAsk = std::chrono::milliseconds(500);
constexpr Duration kAskAgain = std::chrono::seconds(2);  // the request or its answer was lost
constexpr Duration kLine = std::chrono::seconds(5);
constexpr Duration kOutput = std::chrono::milliseconds(200);  // from one look for it to the next
constexpr Duration kGone = std::chrono::seconds(10);
constexpr std::size_t kEventsShown = 5;

// The output: a block that is redrawn, or one line after another.
class Screen {
 public:
  Screen(std::FILE* out, bool terminal) : out_(out), terminal_(terminal) {}
  [[nodiscard]] bool terminal() const { return terminal_; }

  void line(const std::string& text) {
    clear();
    std::fprintf(out_, "%s\n", text.c_str());
    std::fflush(out_);
  }
  void block(const std::vector<std::string>& lines) {
    clear();
    for (const std::string& each : lines) std::fprintf(out_, "%s\n", each.c_str());
    std::fflush(out_);
    drawn_ = lines.size();
  }
  [[nodiscard]] std::size_t width() const {
    winsize size{};
    return ::ioctl(::fileno(out_), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
  }

 private:
  void clear() {
    if (drawn_ > 0) std::fprintf(out_, "\x1b[%zuA\r\x1b[J", drawn_);
    drawn_ = 0;
  }
  std::FILE* out_;
  bool terminal_;
  std::size_t drawn_ = 0;
};

std::string socket_dir_of(const RunControl& control) {
  return control.agent_socket.substr(0, control.agent_socket.rfind('/'));
}

// control.json may name an earlier agent, because the agent may have been started again.
std::optional<pid_t> agent_of(const RunControl& control) {
  return FileLock::owner(private_agent_lock(socket_dir_of(control)));
}

class Watcher {
 public:
  Watcher(EventLoop& loop, JobLink jobd, const WatchOptions& options)
      : loop_(loop),
        jobd_(std::move(jobd)),
        options_(options),
        screen_(options.out, options.terminal),
        heard_(loop.now()) {}

  Result<WatchEnd> run() {
    ANTDT_RETURN_IF_ERROR(
        loop_.watch_signals({SIGINT, SIGTERM, SIGHUP}, [this](int signal) { on_signal(signal); }));
    loop_.watch_socket(jobd_.socket(), [this] { receive(); });
    tick();
    loop_.run();
    loop_.unwatch_socket(jobd_.socket());
    show_output(true);
    return result_;
  }

 private:
  void tick() {
    const MonoTime now = loop_.now();
    if (now >= output_at_) show_output(false);
    if (check_end(now)) return loop_.stop();
    tell_of_gone_hosts(now);
    if (now >= ask_at_) ask(now);
    loop_.call_after(kTick, [this] { tick(); });
  }

  bool check_end(MonoTime now) {
    if (jobd_.goes_through_agent()) {
      if (!refused_ && now - heard_ < kGone) return false;
      result_ = WatchEnd{0, status_.incarnation != 0};
      return true;
    }
    const bool daemon = FileLock::owner(options_.run_dir + "/jobd.lock").has_value();
    if (!daemon && ::access((options_.run_dir + "/summary.json").c_str(), F_OK) == 0) return true;
    const bool agent = agent_of(options_.control).has_value();
    if (daemon || agent || now - heard_ < kGone) {
      return false;
    }
    if (!given_up(options_.run_dir).empty()) {
      result_ = tl::unexpected<Error>(broken_off(options_.run_dir));
      return true;
    }
    const std::string words = last_lines(options_.run_dir + "/agent.log", 3);
    result_ = fail(ErrorKind::kUnreachable,
                   "the job's processes are gone and left no summary; see {}/agent.log{} and "
                   "{}/logs; go on with: antdt run --resume {}",
                   options_.run_dir, words.empty() ? "" : ", which ends with\n" + words + "\n",
                   options_.run_dir, options_.run_dir);
    return true;
  }

  void tell_of_gone_hosts(MonoTime now) {
    if (!options_.lent) return;
    for (wire::HostGone& host : options_.lent->gone()) {
      gone_.emplace(++last_order_, std::move(host));
      ask_at_ = now;
    }
  }

  void ask(MonoTime now) {
    wire::StatusRequest question;
    question.events_from = next_event_;
    jobd_.send(question);
    if (stop_) jobd_.send(*stop_, stop_number_);
    for (const auto& [number, host] : gone_) jobd_.send(host, number);
    ask_at_ = now + kAskAgain;
  }

  void receive() {
    while (const auto packet = jobd_.receive()) {
      if (const auto reply = wire::open_reply<wire::StatusReply>(*packet)) on_reply(*reply);
      const auto envelope = wire::open_envelope(*packet);
      if (!envelope || envelope->kind == wire::StatusReply::kKind) continue;
      refused_ = refused_ || (envelope->kind == wire::Refused::kKind && envelope->seq == 0);
      if (envelope->seq == stop_number_) stop_.reset();
      gone_.erase(envelope->seq);
    }
  }

  void on_reply(const wire::StatusReply& reply) {
    auto status = parse_status(reply.status_json);
    if (!status) return;
    heard_ = loop_.now();
    ask_at_ = heard_ + kAsk;
    // A new incarnation of the daemon numbers its events from 0.
    const bool restarted = status->incarnation != status_.incarnation && status_.incarnation != 0;
    status_ = std::move(*status);
    if (restarted || reply.next_event > next_event_) {
      for (const std::string& text : reply.events) {
        if (const auto event = parse_event(text)) on_event(*event);
      }
      next_event_ = reply.next_event;
    }
    show();
  }

  void show_output(bool last) {
    if (!options_.output) return;
    output_at_ = loop_.now() + kOutput;
    for (const std::string& line : options_.output(last)) screen_.line(line);
  }

  void on_event(const EventView& event) {
    if (!is_notable(event)) return;
    if (!screen_.terminal()) return screen_.line(event_line(event));
    events_.push_back(event);
    if (events_.size() > kEventsShown) events_.pop_front();
  }

  void show() {
    if (screen_.terminal()) {
      return screen_.block(live_block(status_, {events_.begin(), events_.end()}, screen_.width()));
    }
    if (loop_.now() < line_at_) return;
    screen_.line(progress_line(status_));
    line_at_ = loop_.now() + kLine;
  }

  void on_signal(int signal) {
    const bool leaves = signal == SIGHUP && !options_.lent;
    if (leaves || !options_.signals_stop) {
      result_ = WatchEnd{signal};
      return loop_.stop();
    }
    const bool again = asked_to_stop_;
    asked_to_stop_ = true;
    screen_.line(again ? "stopping at once"
                       : "stopping after a checkpoint; press Ctrl-C again to stop at once");
    wire::StopJob stop;
    stop.reason = fmt::format("{}, asked by {}",
                              signal == SIGINT   ? "interrupted (SIGINT)"
                              : signal == SIGHUP ? "its terminal was closed (SIGHUP)"
                                                 : "terminated (SIGTERM)",
                              options_.who);
    stop.grace_ms = again ? 0 : static_cast<std::uint32_t>(options_.stop_grace.count());
    stop_ = std::move(stop);
    stop_number_ = ++last_order_;
    ask(loop_.now());
  }

  EventLoop& loop_;
  JobLink jobd_;
  const WatchOptions& options_;
  Screen screen_;
  Result<WatchEnd> result_ = WatchEnd{};
  MonoTime heard_;
  MonoTime ask_at_{};
  MonoTime line_at_{};
  MonoTime output_at_{};
  std::uint64_t next_event_ = 0;
  report::Status status_;
  std::deque<EventView> events_;
  // Orders are sent until they are answered; the answer repeats the order's number.
  std::uint64_t last_order_ = 0;
  std::optional<wire::StopJob> stop_;
  std::uint64_t stop_number_ = 0;
  std::map<std::uint64_t, wire::HostGone> gone_;
  bool asked_to_stop_ = false;
  bool refused_ = false;
};

}  // namespace

namespace {
sigset_t held_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&set, signal);
  return set;
}
}  // namespace

void hold_signals() {
  const sigset_t set = held_signals();
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

int held_signal_within(Duration time) {
  const sigset_t set = held_signals();
  const auto whole = std::chrono::duration_cast<std::chrono::seconds>(time);
  const timespec timeout{
      whole.count(), std::chrono::duration_cast<std::chrono::nanoseconds>(time - whole).count()};
  return std::max(0, ::sigtimedwait(&set, nullptr, &timeout));
}

Result<WatchEnd> watch(JobLink jobd, const WatchOptions& options) {
  const SteadyClock clock;
  EventLoop loop(clock);
  return Watcher(loop, std::move(jobd), options).run();
}

void finish_agent(const RunControl& control) {
  const SteadyClock clock;
  const std::string socket_dir = socket_dir_of(control);
  const auto gone = [&] { return ::access(socket_dir.c_str(), F_OK) != 0; };
  for (const int signal : {0, SIGTERM, SIGKILL}) {
    const std::optional<pid_t> agent = agent_of(control);
    const auto began = agent ? process_start_time(*agent) : 0;
    if (signal != 0 && began) [[maybe_unused]]
      const Status sent = signal_process(*agent, *began, signal);
    const MonoTime deadline = clock.now() + std::chrono::seconds(3);
    while (!gone() && clock.now() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    if (gone()) return;
  }
  remove_if_dead(socket_dir, Duration::zero());
}

}  // namespace antdt::launcher
