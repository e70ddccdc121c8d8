#include "launcher/view/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/report/states.h"
#include "launcher/view/summary_view.h"
#include "launcher/view/text_table.h"

namespace antdt::launcher {

namespace {

constexpr std::size_t kTold = 8;  // how many failures, actions and events are listed at most

std::string at(double seconds) { return "At " + clock_text(seconds); }

std::string sentence(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  if (!text.empty() && text.back() != '.') text += '.';
  return text;
}

// The newest event of this kind.
const EventView* newest(const std::vector<EventView>& events, std::string_view kind) {
  const auto found = std::find_if(events.rbegin(), events.rend(),
                                  [&](const EventView& e) { return e.kind == kind; });
  return found == events.rend() ? nullptr : &*found;
}

// Why the checkpoint is not read from which training is to go on; null: nothing is known against
// it.
const EventView* unread_checkpoint(const report::Status& s, const std::vector<EventView>& events) {
  const EventView* const unread = newest(events, "checkpoint-unknown");
  const EventView* const formed = newest(events, "generation");
  const bool awaited = s.waiting_for.find("checkpoint") != std::string::npos;
  // Servers form a group with each try, and the event is told once.
  return !awaited && formed != nullptr && unread < formed ? nullptr : unread;
}

std::string list(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

// ------------------------------------------------------------- a running job

std::string why_state(const report::Status& s, const std::vector<EventView>& events) {
  const auto running = std::ranges::count_if(s.workers, is_running);
  const std::optional<JobState> state = state_of(s);
  if (s.paused) return sentence("The job is " + paused_line(s));
  if (state == JobState::kStarting) {
    return fmt::format("The job is starting: its {} workers are being started.", running);
  }
  if (state == JobState::kForming) {
    const EventView* broken = newest(events, "generation-broken");
    return broken == nullptr
               ? fmt::format("The {} workers are meeting for the first time.", running)
               : sentence(fmt::format("The workers are meeting again: {}", broken->text));
  }
  if (state == JobState::kTraining) {
    const double share = s.samples_total == 0 ? 0
                                              : 100.0 * static_cast<double>(s.samples_done) /
                                                    static_cast<double>(s.samples_total);
    if (s.traced) {
      return fmt::format("A script trains with {} workers: it has made {} steps, {:.3g} a second.",
                         running, grouped(s.step), s.traced->steps_per_second);
    }
    return fmt::format(
        "The job trains epoch {} of {} with {} workers; {:.0f}% of all samples are "
        "trained, {} a second.",
        s.epoch + 1, s.epochs, running, share,
        grouped(static_cast<std::uint64_t>(s.samples_per_second + 0.5)));
  }
  if (state == JobState::kEvaluating) {
    return fmt::format("The job evaluates the model after epoch {} of {}.", s.epoch + 1, s.epochs);
  }
  if (state == JobState::kStopping) {
    const EventView* stopping = newest(events, "stopping");
    return sentence(
        fmt::format("The job is stopping: {}", stopping == nullptr ? s.message : stopping->text));
  }
  if (state == JobState::kFinishing && s.training_ended) {
    return sentence("The program has ended the training, and the model is being kept: " +
                    s.training_ended->reason);
  }
  if (state == JobState::kFinishing) return "All records are trained; the model is being kept.";
  return sentence("The job is " + s.state);
}

// The hang with each rank's stack, on lines of their own.
void tell_hang(const report::HangFound& hang, std::vector<std::string>& why) {
  why.push_back(sentence("The ranks hang: " + hang.text));
  for (const report::RankStack& rank : hang.stacks) {
    why.push_back(rank.stack.empty() ? fmt::format("{} did not answer.", rank.worker)
                                     : fmt::format("{} is at {}:", rank.worker, rank.where));
    std::string_view left = rank.stack;
    while (!left.empty()) {
      const std::size_t end = std::min(left.find('\n'), left.size());
      why.push_back("  " + std::string(left.substr(0, end)));
      left.remove_prefix(std::min(end + 1, left.size()));
    }
  }
}

void add_circumstances(const report::Status& s, const std::vector<EventView>& events,
                       std::vector<std::string>& why) {
  if (!s.waiting_for.empty()) why.push_back(sentence("It waits for " + s.waiting_for));
  if (const EventView* unread = unread_checkpoint(s, events)) {
    why.push_back(sentence(at(unread->time_s) + ": " + unread->text));
  }
  if (s.paused) {
    why.emplace_back(
        "Nobody is given records before there is room; workers train what they hold, "
        "and after that their steps are empty.");
  } else if (!s.disk_trouble.empty()) {
    why.push_back(sentence(fmt::format(
        "A disk stands still: {}; the job goes on as far as it can without it", s.disk_trouble)));
  }
  if (!s.solution_trouble.empty()) {
    why.push_back(sentence("Nobody decides on stragglers: " + s.solution_trouble));
  }
  for (const std::string& line : io_lines(s)) why.push_back(sentence(line));
  if (s.hang && !s.hang->over) tell_hang(*s.hang, why);
  for (const report::WorkerStatus& w : s.workers) {
    if (state_of(w) == ProcessState::kWaiting) {
      why.push_back(fmt::format("{} is not running: it waits for a host with room.", w.id));
    } else if (is_running(w) && !w.verdict.empty() && w.verdict != "ok") {
      why.push_back(sentence(fmt::format("{} on {} is a {}", w.id, w.host, told_verdict(w))));
    }
  }
  for (const report::Host& host : s.hosts) {
    if (!host.up) {
      why.push_back(
          fmt::format("The agent of host {} is not reached: if antdtd does not run there, "
                      "start it.",
                      host.name));
    }
    if (host.closed) why.push_back(fmt::format("Host {} was evicted.", host.name));
    if (host.drained) {
      why.push_back(sentence(fmt::format("Host {} is drained {}", host.name, *host.drained)));
    }
    if (host.probation) {
      why.push_back(fmt::format("Host {} failed often lately; others are preferred.", host.name));
    }
  }
  if (const EventView* restored = newest(events, "restored")) {
    why.push_back(sentence(at(restored->time_s) + ": " + restored->text));
  }
  if (s.incarnation > 1) {
    why.push_back(fmt::format("The job daemon was started {} times; it went on from its journal.",
                              s.incarnation));
  }
}

void add_budgets(const report::Status& s, std::vector<std::string>& next) {
  std::vector<std::string> left, none;
  for (const auto& [cls, budget] : s.budgets) {
    if (budget.left == 0) {
      none.push_back(cls);
    } else {
      left.push_back(fmt::format("{} {}", cls, budget.left));
    }
  }
  if (!left.empty()) {
    next.push_back(
        fmt::format("A worker that fails is started again. Failures that the job still tolerates: "
                    "{}; training earns them back (failure.budget_refill).",
                    list(left)));
  }
  if (!none.empty()) {
    next.push_back(
        fmt::format("The next failure of class {} ends the job ([failure] budgets).", list(none)));
  }
}

std::string when_started(const report::WorkerStatus& w, const std::vector<std::string>& awaited) {
  if (w.tried_again_in_s && *w.tried_again_in_s > 0) {
    return fmt::format("{} is started again in {} at the earliest, where a host has room then.",
                       w.id, clock_text(*w.tried_again_in_s));
  }
  if (!awaited.empty()) {
    return fmt::format(
        "{} is started as soon as the agent of {} answers, or another host has room for it.", w.id,
        fmt::join(awaited, " or "));
  }
  return fmt::format("{} is started as soon as a host has room for it.", w.id);
}

void add_next(const report::Status& s, const std::string& run_dir, std::vector<std::string>& next) {
  if (state_of(s) == JobState::kStopping) {
    next.push_back(
        fmt::format("When all have left the run ends; antdt run --resume {} goes on.", run_dir));
    return;
  }
  if (state_of(s) == JobState::kForming || !s.waiting_for.empty()) {
    next.emplace_back(
        "Training goes on when all who are waited for are there; who does not come "
        "within [failure] hang_after is ended and started again. A worker that is reading or "
        "receiving the model is waited for as long as data arrives.");
  }
  const std::vector<std::string> awaited = awaited_hosts(s);
  for (const report::WorkerStatus& w : s.workers) {
    if (state_of(w) == ProcessState::kWaiting) next.push_back(when_started(w, awaited));
  }
  if (s.eta_seconds) {
    next.push_back(
        fmt::format("At this speed training takes another {}.", clock_text(*s.eta_seconds)));
  }
  add_budgets(s, next);
}

// ------------------------------------------------------------------ what was done

// `count`: of all, of which `failures` are the newest.
void tell_failures(const std::vector<report::Failure>& failures, std::uint64_t count,
                   std::vector<std::string>& done) {
  const std::size_t from = failures.size() - std::min(failures.size(), kTold);
  const std::uint64_t before = in_all(failures, count) - (failures.size() - from);
  if (before > 0) done.push_back(fmt::format("{} failures before these.", grouped(before)));
  for (std::size_t i = from; i < failures.size(); ++i) {
    const report::Failure& f = failures[i];
    std::string text = fmt::format("{} {} on {} failed (class {}): {}", at(f.time_s), f.worker,
                                   f.host, f.cls, f.cause.substr(0, f.cause.find('\n')));
    if (!f.first) text += "; a consequence of another failure";
    text += f.recovered_in_s ? fmt::format("; training went on after {}{}",
                                           clock_text(*f.recovered_in_s), from_where(f))
                             : "; training has not gone on since";
    done.push_back(sentence(text));
  }
}

// Whether the job still offers to do it. A later action of the same kind on the same target has
// taken its place: another advice, or the same one, approved.
bool is_offered(const std::vector<report::Action>& actions, std::size_t i) {
  const report::Action& a = actions[i];
  if (outcome_of(a) != ActionOutcome::kAdvised || a.number == 0) return false;
  return std::none_of(actions.begin() + static_cast<std::ptrdiff_t>(i) + 1, actions.end(),
                      [&](const report::Action& later) {
                        return later.kind == a.kind && later.target == a.target;
                      });
}

// `count`: as above. `job`: what `antdt approve` is told; "" if the job has ended.
void tell_actions(const std::vector<report::Action>& actions, std::uint64_t count,
                  const std::string& job, std::vector<std::string>& done) {
  const std::size_t from = actions.size() - std::min(actions.size(), kTold);
  const std::uint64_t before = in_all(actions, count) - (actions.size() - from);
  if (before > 0) done.push_back(fmt::format("{} actions before these.", grouped(before)));
  for (std::size_t i = from; i < actions.size(); ++i) {
    const report::Action& a = actions[i];
    const bool waits = !job.empty() && is_offered(actions, i);
    const std::string how =
        waits ? fmt::format(": antdt approve {} {} does it", job, a.number) : "";
    done.push_back(
        sentence(fmt::format("{} {}{}{} ({}{}): {}", at(a.time_s), a.kind,
                             a.target.empty() ? "" : " ", a.target, a.outcome, how, a.reason)));
  }
}

// ------------------------------------------------------------------- ended, job

Result<Explanation> explain_ended(const ExplainInput& input) {
  ANTDT_TRY(const report::Summary s, parse_summary(input.summary_json));
  Explanation e;
  e.why.push_back(
      s.exit.first_cause.empty()
          ? fmt::format("The job is {}.", s.state)
          : sentence(fmt::format("The job {} (exit code {}): {}",
                                 end_of(s) == JobEnd::kStopped ? "was stopped" : "failed",
                                 s.exit.code, s.exit.first_cause)));
  if (s.hang && !s.hang->over) tell_hang(*s.hang, e.why);
  tell_failures(s.failures, s.failures_count, e.done);
  tell_actions(s.actions, s.actions_count, "", e.done);
  if (end_of(s) == JobEnd::kDone) return e;
  e.next.push_back(
      s.exit.resumable
          ? fmt::format("antdt run --resume {} goes on from its last checkpoint.", input.run_dir)
          : fmt::format("It has no checkpoint to go on from, or would fail again as it is: mend "
                        "the cause; antdt run --resume {} then begins where it can.",
                        input.run_dir));
  return e;
}

Explanation explain_broken_off(const ExplainInput& input) {
  Explanation e;
  e.why.push_back(
      input.given_up.empty()
          ? "The run was broken off: its processes are gone and wrote no summary, as when "
            "the machine loses power or all of them are killed."
          : sentence("The run was broken off: its agent gave it up, because " + input.given_up));
  if (!input.events.empty()) {
    const EventView& last = input.events.back();
    e.why.push_back(sentence(fmt::format("The last that is known of it, {} after its beginning: {}",
                                         clock_text(last.time_s), last.text)));
  }
  if (!input.given_up.empty())
    e.next.emplace_back("Mend that first: the next agent would give it up again.");
  e.next.push_back(
      input.has_checkpoint.value_or(true)
          ? fmt::format("antdt run --resume {} goes on from its last checkpoint.", input.run_dir)
          : fmt::format("There is no complete checkpoint in {0}/checkpoints: antdt run --resume "
                        "{0} begins the training again, unless another host of the job, or its "
                        "program, has one.",
                        input.run_dir));
  return e;
}

// -------------------------------------------------------------------- a worker

std::string why_worker(const report::WorkerStatus& w) {
  const std::optional<ProcessState> state = state_of(w);
  if (state == ProcessState::kPlanned)
    return fmt::format("{} is being started on {}.", w.id, w.host);
  if (state == ProcessState::kStarted) {
    return fmt::format("{} runs on {} (pid {}, attempt {}) and has not joined yet.", w.id, w.host,
                       w.pid, w.attempt);
  }
  if (state == ProcessState::kJoined && w.rank) {
    return fmt::format(
        "{} is rank {}, on {} (pid {}, attempt {}), with {} samples of each global "
        "batch.",
        w.id, *w.rank, w.host, w.pid, w.attempt, w.batch);
  }
  if (state == ProcessState::kJoined) {
    return fmt::format("{} on {} (pid {}, attempt {}) is ready and waits to become a member.", w.id,
                       w.host, w.pid, w.attempt);
  }
  if (state == ProcessState::kLeaving) {
    return fmt::format("{} on {} was asked to leave and finishes its step.", w.id, w.host);
  }
  if (state == ProcessState::kWaiting) return fmt::format("{} waits for a host with room.", w.id);
  if (state == ProcessState::kRemoved) {
    return fmt::format("{} has left the job: it was evicted, or fewer workers are wanted.", w.id);
  }
  return w.state.empty()
             ? fmt::format("{} ran on {} (attempt {}).", w.id, w.host, w.attempt)
             : fmt::format("{} has ended (attempt {}, on {}).", w.id, w.attempt, w.host);
}

void add_next_of_worker(const report::WorkerStatus& w, const report::Status& s,
                        std::vector<std::string>& next) {
  const std::optional<ProcessState> state = state_of(w);
  if (state == ProcessState::kPlanned || state == ProcessState::kStarted) {
    next.push_back(
        fmt::format("When {} has joined, the group forms anew and sends it the training "
                    "state.",
                    w.id));
  } else if (state == ProcessState::kWaiting) {
    next.push_back(when_started(w, awaited_hosts(s)));
  } else if (state == ProcessState::kLeaving) {
    next.emplace_back("What it holds is given to the others; past its deadline it is killed.");
  } else if (state == ProcessState::kRemoved) {
    next.emplace_back("It comes back only if the job gets more workers (antdt resize).");
  }
  if (is_running(w)) add_budgets(s, next);
}

// Explains one worker of a job, whether it runs or has ended.
struct OneWorker {
  report::WorkerStatus worker;
  std::vector<report::Failure> failures;
  std::vector<report::Action> actions;
  std::vector<std::string> unknown;  // sentences: what of its past may be missing here
};

// Reports count the job's failures and actions, not each worker's.
template <class T>
void tell_missing(const char* what, const std::vector<T>& newest, std::uint64_t count,
                  std::vector<std::string>& unknown) {
  const std::uint64_t all = in_all(newest, count);
  if (all == newest.size()) return;
  unknown.push_back(fmt::format("Of the job's {} {}, only the newest {} are known here.",
                                grouped(all), what, grouped(newest.size())));
}

// `s`: the status or the summary to which these workers belong.
template <class T>
Result<OneWorker> find_worker(const T& s, const std::vector<report::WorkerStatus>& workers,
                              const std::string& id) {
  const auto found = std::ranges::find(workers, id, &report::WorkerStatus::id);
  if (found == workers.end()) {
    std::vector<std::string> ids;
    for (const auto& w : workers) ids.push_back(w.id);
    return fail(ErrorKind::kUsage, "the job has no worker '{}'; it has {}", id,
                ids.empty() ? "none" : list(ids));
  }
  OneWorker one{*found, {}, {}, {}};
  tell_missing("failures", s.failures, s.failures_count, one.unknown);
  tell_missing("actions", s.actions, s.actions_count, one.unknown);
  std::ranges::copy_if(s.failures, std::back_inserter(one.failures),
                       [&](const report::Failure& f) { return f.worker == id; });
  std::ranges::copy_if(s.actions, std::back_inserter(one.actions),
                       [&](const report::Action& a) { return a.target == id; });
  return one;
}

// `job`: as for tell_actions().
void tell_past(const OneWorker& one, const std::vector<EventView>& events, const std::string& job,
               Explanation& e) {
  e.done = one.unknown;
  tell_failures(one.failures, one.failures.size(), e.done);
  tell_actions(one.actions, one.actions.size(), job, e.done);
  const EventView* last = last_event(events, one.worker.id);
  const auto tells_it = [&](const std::string& told) {
    return told.find(last->text) != std::string::npos;
  };
  if (last != nullptr && std::ranges::none_of(e.done, tells_it)) {
    e.done.push_back(sentence(at(last->time_s) + ", last of all: " + last->text));
  }
}

Result<Explanation> explain_worker(const ExplainInput& input) {
  Explanation e;
  if (!input.status_json.empty()) {
    ANTDT_TRY(const report::Status s, parse_status(input.status_json));
    ANTDT_TRY(const OneWorker one, find_worker(s, s.workers, input.worker));
    const report::WorkerStatus& w = one.worker;
    e.why.push_back(why_worker(w));
    if (is_running(w) && !w.verdict.empty() && w.verdict != "ok") {
      e.why.push_back(sentence(fmt::format("The monitor sees a {}", told_verdict(w))));
    }
    tell_past(one, input.events, s.job, e);
    add_next_of_worker(w, s, e.next);
    return e;
  }
  if (input.summary_json.empty()) return explain_broken_off(input);
  ANTDT_TRY(const report::Summary s, parse_summary(input.summary_json));
  ANTDT_TRY(const OneWorker one, find_worker(s, workers_of(s), input.worker));
  e.why.push_back(why_worker(one.worker));
  tell_past(one, input.events, "", e);
  return e;
}

}  // namespace

Result<Explanation> explain(const ExplainInput& input) {
  if (!input.worker.empty()) return explain_worker(input);
  if (input.status_json.empty()) {
    if (input.summary_json.empty()) return explain_broken_off(input);
    return explain_ended(input);
  }
  ANTDT_TRY(const report::Status s, parse_status(input.status_json));
  Explanation e;
  e.why.push_back(why_state(s, input.events));
  add_circumstances(s, input.events, e.why);
  tell_failures(s.failures, s.failures_count, e.done);
  tell_actions(s.actions, s.actions_count, s.job, e.done);
  add_next(s, input.run_dir, e.next);
  return e;
}

std::vector<std::string> to_lines(const Explanation& explanation) {
  std::vector<std::string> lines;
  const auto add = [&](const char* heading, const std::vector<std::string>& sentences) {
    if (sentences.empty()) return;
    lines.emplace_back(heading);
    for (const std::string& each : sentences) lines.push_back("  " + each);
  };
  add("Why it is so", explanation.why);
  add("What was done", explanation.done);
  add("What comes next", explanation.next);
  return lines;
}

std::string to_json(const Explanation& explanation) {
  const nlohmann::ordered_json out = {
      {"why", explanation.why}, {"done", explanation.done}, {"next", explanation.next}};
  // Reasons are what programs wrote, cut to a length.
  return out.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace antdt::launcher
