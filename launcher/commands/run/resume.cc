#include "launcher/commands/run/resume.h"

#include <unistd.h>

#include <filesystem>
#include <set>

#include "core/os/fs.h"
#include "core/os/runtime_dir.h"
#include "core/report/states.h"
#include "core/role_protocol.h"
#include "ctl/job/newest_image.h"
#include "ctl/membership/data_identity.h"
#include "jobd/disk/checkpoint_store.h"
#include "jobd/disk/run_journal.h"
#include "jobd/programs/job_spec.h"
#include "launcher/commands/operate/elsewhere.h"
#include "launcher/commands/run/fetch_back.h"
#include "launcher/commands/run/grow.h"
#include "launcher/commands/run/index_pinned.h"
#include "launcher/commands/run/prepare.h"
#include "launcher/commands/run/watch_run.h"
#include "launcher/commands/show/runs.h"
#include "launcher/config/resume_settings.h"
#include "launcher/start/resume_request.h"
#include "launcher/start/start.h"
#include "launcher/view/live_view.h"
#include "launcher/view/summary_view.h"

namespace antdt::cli {
namespace {

bool is_there(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

// A second job daemon would train beside the first one.
Status check_host_is_lost(const ResumeOptions& options, const std::string& run_dir) {
  const std::string host = unseen_host(run_dir);
  if (host.empty()) return {};
  if (FileLock::owner(run_dir + "/jobd.lock")) {
    return fail(
        ErrorKind::kUnreachable,
        "the run in {} still runs on {}, whose job daemon holds {}/jobd.lock: watch it there "
        "with antdt attach {}",
        run_dir, host, run_dir, run_dir);
  }
  if (options.lent || options.lost_host == host) return {};
  return fail(
      ErrorKind::kUnreachable,
      "the run in {} was started on {} and has not ended; whether it goes on there cannot be "
      "seen from here. Resume it on {}; or if {} is lost, or nothing of the run is left on "
      "it, say so: antdt run --resume {} --lost-host {}",
      run_dir, host, host, host, run_dir, host);
}

Status check_ended(const ResumeOptions& options, const std::string& run_dir) {
  ANTDT_RETURN_IF_ERROR(check_host_is_lost(options, run_dir));
  if (state_of(run_dir) == RunState::kBrokenOff) {
    ANTDT_RETURN_IF_ERROR(check_not_elsewhere(run_dir));
  }
  if (present_state(run_dir) == RunState::kRunning) {
    return fail(ErrorKind::kUsage, "the run in {} still runs: watch it with antdt attach {}",
                run_dir, run_dir);
  }
  if (!is_there(run_dir + "/summary.json")) return {};  // the run broke off
  ANTDT_TRY(const report::Summary summary, launcher::read_summary(run_dir));
  if (end_of(summary) != JobEnd::kDone) return {};
  return fail(ErrorKind::kUsage,
              "the run in {} is done: there is nothing to resume (antdt status {} shows its end). "
              "To train further, begin a new run whose program loads the model of this one: antdt "
              "model export {} or, in Python, antdt.torch.load",
              run_dir, run_dir, run_dir);
}

// Finds a damaged journal before anything starts.
Result<shard_server::JournalContent> read_journal(const ResumeOptions& options,
                                                  const std::string& run_dir,
                                                  const jobd::RunJournal& journal) {
  const std::string way_out = fmt::format(
      "antdt run --resume {}{} --from-checkpoint goes on with what the newest complete checkpoint "
      "knows, and trains again what came after it",
      run_dir, options.lost_host.empty() ? "" : " --lost-host " + options.lost_host);
  if (!journal.may_exist()) {
    return fail(ErrorKind::kUsage, "the run in {} has no journal: {} is not there. {}", run_dir,
                journal.name(), way_out);
  }
  auto content = journal.read();
  if (content) return content;
  if (content.error().kind == ErrorKind::kUnreachable) {
    return fail(ErrorKind::kUnreachable,
                "the run in {} cannot be resumed now: {}. Nothing was changed. Try again when {} "
                "answers",
                run_dir, content.error().message, journal.place());
  }
  return fail(content.error().kind,
              "the run in {} cannot be resumed, since its journal cannot be read: {}. Nothing was "
              "changed. Restore {} from a copy, or: {}",
              run_dir, content.error().message, journal.name(), way_out);
}

std::string lines_of(const std::vector<std::string>& sentences) {
  std::string text;
  for (const std::string& sentence : sentences) text += "\n  " + sentence;
  return text;
}

bool keeps_checkpoints(const launcher::JobConfig& config) {
  const launcher::RoleSection& role = config.roles.worker;
  return speaks(role.protocol, Protocol::kAntdt) && role.count > 0;
}

struct GoesOnFrom {
  jobd::CheckpointStore::Newest newest;
  // one for each host that may have a newer one and could not be read
  std::vector<std::string> troubles;
};

// The newest complete checkpoint of any host. Afterwards this host has it.
Result<GoesOnFrom> newest_of_all(const ResumeOptions& options, const std::string& run_dir,
                                 const launcher::JobConfig& config) {
  const jobd::CheckpointStore store(run_dir, config.checkpoint.keep);
  auto newest = store.newest();
  if (!newest) {
    return fail(
        newest.error().kind,
        "{}: whether the run has a checkpoint is unknown, and nothing was started. Make the "
        "directory readable and resume",
        newest.error().message);
  }
  GoesOnFrom found{std::move(*newest), {}};
  for (const auto* sentences : {&found.newest.problems, &found.newest.unreadable}) {
    for (const std::string& text : *sentences) fmt::print(stderr, "antdt: {}\n", text);
  }
  if (!keeps_checkpoints(config)) return found;
  ANTDT_TRY(FetchedBack back,
            fetch_back(run_dir, config, found.newest.found.directory, [&](const auto& text) {
              fmt::print(talk(options.json), "{}\n", text);
              std::fflush(talk(options.json));
            }));
  const bool damaged = !found.newest.problems.empty() || !found.newest.unreadable.empty();
  if (back.fetched) {
    ANTDT_TRY(found.newest, store.newest());
  }
  if (found.newest.none() || (damaged && !back.fetched)) {
    found.troubles = std::move(back.troubles);
  } else {
    found.troubles = std::move(back.unfetched);
  }
  return found;
}

// An evicted host is not used again, whether antdtd runs there or not.
void tell_absent(const std::vector<std::string>& hosts, const std::set<std::string>& evicted) {
  std::vector<std::string> used;
  std::vector<std::string> unused;
  for (const std::string& host : hosts) (evicted.contains(host) ? unused : used).push_back(host);
  if (!used.empty()) {
    fmt::print(
        stderr,
        "antdt: no answer from {}: the job goes on without, with fewer workers where the other "
        "hosts have no room for all; it uses such a host as soon as antdtd runs there\n",
        fmt::join(used, ", "));
  }
  if (unused.empty()) return;
  fmt::print(stderr,
             "antdt: no answer from {}: the job goes on without these hosts, and does not use them "
             "again, because they were evicted (antdt evict)\n",
             fmt::join(unused, ", "));
}

// Prints from which checkpoint training goes on, and which newer ones cannot be read.
Status check_checkpoints(const ResumeOptions& options, const std::string& run_dir,
                         const launcher::JobConfig& config) {
  ANTDT_TRY(const GoesOnFrom from, newest_of_all(options, run_dir, config));
  if (!from.newest.none()) {
    if (!from.troubles.empty()) {
      fmt::print(stderr, "antdt: a newer checkpoint may be on a host that could not be read:{}\n",
                 lines_of(from.troubles));
    }
    fmt::print(talk(options.json), "training goes on from {} (step {}){}\n",
               from.newest.found.directory, from.newest.found.step,
               from.newest.unreadable.empty() && from.troubles.empty()
                   ? ""
                   : ", if the newer one cannot be read within a minute");
    return {};
  }
  if (!from.newest.unreadable.empty()) {
    return fail(ErrorKind::kIo,
                "{}: whether the run has a complete checkpoint is unknown, and nothing was "
                "started. Make it readable and resume; if that checkpoint is lost for good, "
                "delete its directory first",
                from.newest.unreadable.front());
  }
  if (!from.troubles.empty()) {
    return fail(
        ErrorKind::kUnreachable,
        "this host has no complete checkpoint of the run, and not all others could be asked "
        "for one:{}\nBring these hosts back and resume again. If their checkpoints are "
        "lost, leave them out by --set 'cluster.hosts=[...]'",
        lines_of(from.troubles));
  }
  if (options.from_checkpoint) {
    return fail(ErrorKind::kUsage,
                "{}/checkpoints has no complete checkpoint, nor has another host of the run, and "
                "without one only the journal knows the run: begin a new run",
                run_dir);
  }
  fmt::print(talk(options.json), "there is no complete checkpoint: training begins again\n");
  return {};
}

Status check_keeps_checkpoints(const launcher::JobConfig& config) {
  if (keeps_checkpoints(config)) return {};
  return fail(ErrorKind::kUsage,
              "--from-checkpoint is for jobs whose checkpoints AntDT keeps: the workers of this "
              "one keep their own; begin a new run");
}

// Records that were added: the new text of data.json, and the change for people. Both are empty if
// there are none.
struct Grown {
  std::string data_json;
  std::string change;
};

// The data must be what the run began with, because its records are known by number; or they may
// have grown, with --grow.
Result<Grown> check_data(const ResumeOptions& options, const std::string& run_dir,
                         const launcher::JobConfig& config) {
  ANTDT_TRY(const jobd::DataFound before, jobd::load_data_found(run_dir));
  ANTDT_TRY(const std::string now_text, index_data(config));
  ANTDT_TRY(const jobd::DataFound now, jobd::data_found(now_text, "what was found now"));
  ANTDT_RETURN_IF_ERROR(check_pins_kept(before.pins, now.pins));
  const auto difference = ctl::data_difference(before, now, "this host now");
  if (!difference) {
    if (options.grow) {
      fmt::print(talk(options.json), "nothing was added: the data have {} records, as before\n",
                 now.train_records);
    }
    return Grown{};
  }
  if (options.grow) {
    ANTDT_TRY(std::string text, grown_data(config, before, now, now_text));
    fmt::print(talk(options.json),
               "{} records were added: {} from the next epoch on, {} in the present one\n",
               now.train_records - before.train_records, now.train_records, before.train_records);
    const auto summary = launcher::read_summary(run_dir);
    if (summary && summary->epochs.size() >= config.job.epochs) {
      fmt::print(
          stderr,
          "antdt: the last of the run's {} epochs has begun, so nothing will see the records "
          "that were added\n",
          config.job.epochs);
    }
    return Grown{std::move(text), fmt::format("training data from {} to {} records",
                                              before.train_records, now.train_records)};
  }
  return fail(ErrorKind::kUsage,
              "the data is not what the run in {} began with, which its data.json tells: {}. Put "
              "the old files back, or begin a new run. If records were only added after the old "
              "ones, add --grow, and the next epoch sees them",
              run_dir, *difference);
}

// The run's configuration with the requested changes.
Result<launcher::ChangedConfig> settings(const std::string& run_dir, const ResumeOptions& options) {
  ANTDT_TRY(const launcher::JobConfig before, launcher::load_effective(run_dir));
  if (options.set.empty()) return launcher::ChangedConfig{before, {}};
  ANTDT_TRY(launcher::ChangedConfig changed,
            launcher::change_settings(before, options.set, options.grow));
  ANTDT_RETURN_IF_ERROR(find_own_programs(changed.config));
  return changed;
}

Status change_settings(const ResumeOptions& options, const std::string& run_dir,
                       const launcher::ChangedConfig& changed) {
  if (changed.changes.empty()) return {};
  for (const launcher::ChangedSetting& change : changed.changes) {
    fmt::print(talk(options.json), "changed {}\n", launcher::text_of({change}));
  }
  return launcher::write_effective(run_dir, changed.config);
}

// The changes in a request that no job daemon has read yet may already be in force.
Status request_resume(const ResumeOptions& options, const std::string& run_dir,
                      const launcher::ChangedConfig& changed, const Grown& grown) {
  launcher::ResumeRequest request{operator_name(), options.from_checkpoint,
                                  launcher::text_of(changed.changes)};
  if (!grown.change.empty()) {
    request.changes += (request.changes.empty() ? "" : ", ") + grown.change;
  }
  const auto unread = launcher::read_resume_request(run_dir);
  if (unread && *unread && !(*unread)->changes.empty()) {
    const std::string& before = (*unread)->changes;
    request.changes = request.changes.empty() ? before : before + ", " + request.changes;
  }
  return launcher::write_resume_request(run_dir, request);
}

// Keeps the summary of the previous end under a name of its own.
Status put_summary_aside(const std::string& run_dir) {
  const std::string summary = run_dir + "/summary.json";
  if (!is_there(summary)) return {};
  int number = 1;
  while (is_there(fmt::format("{}/summary.{}.json", run_dir, number))) ++number;
  std::error_code error;
  std::filesystem::rename(summary, fmt::format("{}/summary.{}.json", run_dir, number), error);
  if (error) return fail_errno(ErrorKind::kIo, error.value(), "rename " + summary);
  return sync_directory(run_dir);
}

}  // namespace

Result<int> resume(const ResumeOptions& options) {
  ANTDT_TRY(const launcher::Programs programs, launcher::find_programs());
  ANTDT_TRY(const std::string sockets, runtime_directory());
  ANTDT_TRY(const std::string run_dir, find_job(options.run));
  ANTDT_RETURN_IF_ERROR(check_ended(options, run_dir));
  ANTDT_TRY(const FileLock lock, launcher::hold_run_directory(run_dir));
  ANTDT_TRY(const launcher::RunControl before, launcher::read_control(run_dir));
  ANTDT_TRY(const launcher::ChangedConfig changed, settings(run_dir, options));
  const launcher::JobConfig& config = changed.config;
  ANTDT_RETURN_IF_ERROR(check_metrics_address(config));
  const jobd::RunJournal journal(config, run_dir, before.state_dir);
  ANTDT_RETURN_IF_ERROR(check_not_elsewhere(run_dir));
  std::set<std::string> evicted;  // a journal that is put aside takes them along
  if (options.from_checkpoint) {
    ANTDT_RETURN_IF_ERROR(check_keeps_checkpoints(config));
  } else {
    ANTDT_TRY(const shard_server::JournalContent content, read_journal(options, run_dir, journal));
    const auto image = ctl::newest_image(content);
    if (image && *image) evicted = ctl::evicted_hosts(**image);
  }
  ANTDT_TRY(const std::vector<std::string> absent, absent_hosts(config));
  ANTDT_TRY(const Grown grown, check_data(options, run_dir, config));
  ANTDT_RETURN_IF_ERROR(check_checkpoints(options, run_dir, config));
  tell_absent(absent, evicted);

  // If this process dies on the way, the run has not ended, and resuming it again in the same way
  // is correct.
  if (options.from_checkpoint) {
    ANTDT_TRY(const std::string aside, journal.put_aside());
    fmt::print(talk(options.json), "{}\n",
               aside.empty() ? "this host has no journal of the run: a new one begins"
                             : "the journal was put aside as " + aside);
  }
  ANTDT_RETURN_IF_ERROR(change_settings(options, run_dir, changed));
  if (!grown.data_json.empty()) {
    ANTDT_RETURN_IF_ERROR(write_file_atomic(run_dir + "/data.json", grown.data_json, 0600));
  }
  ANTDT_RETURN_IF_ERROR(request_resume(options, run_dir, changed, grown));
  ANTDT_RETURN_IF_ERROR(put_summary_aside(run_dir));
  launcher::hold_signals();
  launcher::finish_agent(before);  // of a run that has ended just now
  transport::Context context;
  const launcher::DetachedPlace place = place_of(options.detach, before.job);
  ANTDT_TRY(const launcher::RunControl control,
            launcher::start_job(context, {programs, sockets, run_dir, before.state_dir, before.job,
                                          place.launcher, config.failure.orphan_timeout}));
  print_started({before.job, run_dir, options.json, options.detach, place});
  if (options.detach) return 0;
  return watch_run(context,
                   {run_dir, control, config.failure.stop_grace, options.json, true, options.lent});
}

}  // namespace antdt::cli
