#include "jobd/disk/run_copies.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "core/ids.h"
#include "core/log/log.h"
#include "core/os/directory.h"
#include "core/os/fs.h"

namespace antdt::jobd {
namespace {

namespace copies = ctl::copies;

constexpr std::string_view kProbe = ".probe-";
constexpr std::size_t kThreads = 4;
constexpr Duration kCopyTick = std::chrono::milliseconds(500);

std::string name_of(const std::string& directory) {
  return std::filesystem::path(directory).filename().string();
}

// What this host answers to its own probe. Hosts that share the directory find the same.
Result<std::string> own_identity(const std::string& run_dir, const std::string& probe) {
  ANTDT_RETURN_IF_ERROR(make_directories(run_dir + "/checkpoints", 0700));
  const std::string path = fmt::format("{}/checkpoints/{}", run_dir, probe);
  if (::symlink(new_ulid().c_str(), path.c_str()) != 0 && errno != EEXIST) {
    return fail_errno(ErrorKind::kIo, errno, "making " + path);
  }
  std::array<char, 256> text{};
  const ssize_t size = ::readlink(path.c_str(), text.data(), text.size());
  if (size < 0) return fail_errno(ErrorKind::kIo, errno, "reading " + path);
  return std::string(text.data(), static_cast<std::size_t>(size));
}

}  // namespace

RunCopies::RunCopies(EventLoop& loop, const Clock& clock, Options options, Handlers handlers)
    : loop_(loop),
      clock_(clock),
      options_(std::move(options)),
      handlers_(std::move(handlers)),
      probe_(std::string(kProbe) + new_ulid()),
      machine_(options_.copies),
      moved_(std::make_shared<std::atomic<std::uint64_t>>(0)) {}

RunCopies::~RunCopies() {
  if (timer_) loop_.cancel(*timer_);
  for (auto& [task, running] : running_) *running.stop = true;
  for (Thread& thread : threads_) loop_.unwatch_fd(thread.disk->ready_fd());
}

void RunCopies::add(transport::Context& context, HostAddress address) {
  context_ = &context;
  at_disk_[address.endpoint] = std::make_shared<std::atomic<std::uint32_t>>(0);
  addresses_[address.endpoint] = std::move(address);
  if (!timer_) timer_ = loop_.call_after(kCopyTick, [this] { tick(); });
}

// ------------------------------------------------------------------ what is asked

void RunCopies::host_up(const std::string& host) {
  if (addresses_.contains(host)) step(copies::HostAppeared{host});
}

void RunCopies::host_lost(const std::string& host) {
  if (addresses_.contains(host)) step(copies::HostVanished{host});
}

void RunCopies::gather(std::uint64_t number, const std::string& directory,
                       std::vector<copies::Part> parts, Then then) {
  std::erase_if(parts, [&](const copies::Part& part) { return !addresses_.contains(part.host); });
  if (parts.empty()) return then("");
  const std::string unfinished = name_of(directory);
  if (!copies::age_of(unfinished)) {
    return then(
        fmt::format("it was written into {}, which is no directory of an unfinished "
                    "checkpoint",
                    directory));
  }
  gathering_[number] = std::move(then);
  step(copies::PartsWritten{number, unfinished, std::move(parts)});
}

void RunCopies::kept(std::vector<std::string> names, const std::string& stored,
                     const std::string& directory) {
  if (addresses_.empty()) return;
  step(copies::CheckpointsListed{std::move(names), stored, name_of(directory)});
}

void RunCopies::job_done(std::vector<std::string> names) {
  if (!addresses_.empty()) step(copies::TrainingDone{std::move(names)});
}

bool RunCopies::can_read(const std::string& host, const std::string& directory) const {
  return directory.empty() || !addresses_.contains(host) || machine_.shares(host);
}

void RunCopies::reach(const std::string& host, const std::string& directory, Then then) {
  const std::uint64_t number = ++last_need_;
  reaching_[number] = std::move(then);
  step(copies::CheckpointNeeded{number, host, name_of(directory)});
}

void RunCopies::find(const std::string& newest, std::function<void(const Found&)> then) {
  if (addresses_.empty()) return then({});
  finding_ = std::move(then);
  step(copies::NewestWanted{name_of(newest)});
}

void RunCopies::chosen() {
  if (!addresses_.empty()) step(copies::NewestChosen{});
}

void RunCopies::doubt(const std::string& directory) {
  if (!addresses_.empty()) step(copies::CopiesDoubted{name_of(directory)});
}

void RunCopies::given_up(copies::Age up_to) {
  if (!addresses_.empty()) step(copies::CheckpointsGivenUp{up_to});
}

void RunCopies::remove_probes(const std::string& run_dir) {
  const std::string checkpoints = run_dir + "/checkpoints";
  std::error_code ignored;
  for (const std::string& name : names_in(checkpoints).value_or(std::vector<std::string>())) {
    if (name.starts_with(kProbe)) std::filesystem::remove(checkpoints + "/" + name, ignored);
  }
}

bool RunCopies::idle() const { return addresses_.empty() || machine_.idle(); }

std::size_t RunCopies::hosts_at_disk() const {
  return static_cast<std::size_t>(std::ranges::count_if(at_disk_, [&](const auto& host) {
    return *host.second > 0 && !stuck_.contains(host.first);
  }));
}

std::vector<std::string> RunCopies::lacking() const {
  std::vector<std::string> texts;
  for (const std::string& name : machine_.lacking()) {
    texts.push_back(
        fmt::format("checkpoint {} is on {} of {} hosts, and is not copied any more: "
                    "nothing was for too long",
                    name, machine_.copies_of(name), options_.copies));
  }
  return texts;
}

bool RunCopies::end(Duration patience) {
  for (auto& [task, running] : running_) *running.stop = true;
  return std::ranges::all_of(threads_, [&](Thread& t) { return t.disk->end(patience); });
}

// ------------------------------------------------------------------- the machine

void RunCopies::step(const copies::Input& input) {
  waiting_.push_back(input);
  if (std::exchange(stepping_, true)) return;
  while (!waiting_.empty()) {
    const copies::Input next = std::move(waiting_.front());
    waiting_.erase(waiting_.begin());
    copies::Effects effects;
    machine_.step(next, loop_.now(), effects);
    for (const copies::Effect& effect : effects) {
      std::visit([this](const auto& e) { perform(e); }, effect);
    }
  }
  stepping_ = false;
}

void RunCopies::tick() {
  timer_ = loop_.call_after(kCopyTick, [this] { tick(); });
  const std::uint64_t moved = *moved_;
  const bool moves = std::exchange(moved_said_, moved) != moved || hosts_at_disk() > 0;
  if (moves && handlers_.moved) handlers_.moved();
  step(copies::TimePassed{});
}

RunCopies::Thread& RunCopies::idlest(std::size_t& index) {
  const auto least = std::ranges::min_element(threads_, {}, &Thread::tasks);
  if (threads_.size() < kThreads && (least == threads_.end() || least->tasks > 0)) {
    threads_.push_back({std::make_unique<DiskThread>(clock_), 0});
    DiskThread* const disk = threads_.back().disk.get();
    loop_.watch_fd(disk->ready_fd(), [disk] { disk->deliver(); });
    index = threads_.size() - 1;
  } else {
    index = static_cast<std::size_t>(least - threads_.begin());
  }
  return threads_[index];
}

void RunCopies::begin(copies::TaskId task, const std::string& host, Work work) {
  Running running;
  running.stop = std::make_shared<std::atomic<bool>>(false);
  Thread& thread = idlest(running.thread);
  ++thread.tasks;
  const auto run = [this, task, host, work = std::move(work), address = addresses_.at(host),
                    context = context_, options = options_, stop = running.stop, moved = moved_,
                    at_disk = at_disk_.at(host)]() -> DiskThread::Then {
    HostFiles::Watch watch;
    watch.stop = stop.get();
    watch.answers = options.answers;
    watch.moved = [&](std::uint64_t bytes) { *moved += bytes; };
    watch.at_disk = at_disk.get();
    Outcome outcome;
    if (*stop) {
      outcome.status = fail(ErrorKind::kRefused, "it was stopped");
    } else if (auto files = HostFiles::open(*context, address, options.job, options.run_dir,
                                            std::move(watch))) {
      outcome = work(*files);
    } else {
      outcome.status = tl::unexpected<Error>(files.error());
    }
    return [this, task, host, outcome] { done(task, host, outcome); };
  };
  running_[task] = running;
  thread.disk->run("copying files", run);
}

void RunCopies::done(copies::TaskId task, const std::string& host, const Outcome& outcome) {
  const auto running = running_.find(task);
  if (running != running_.end()) {
    --threads_[running->second.thread].tasks;
    running_.erase(running);
  }
  if (!outcome.status) {
    const Error& error = outcome.status.error();
    const bool foreign = error.kind == ErrorKind::kUsage;  // the run directory there
    if (error.kind == ErrorKind::kUnreachable) stuck_.insert(host);
    step(copies::TaskFailed{task, error.message, error.kind == ErrorKind::kCorrupt,
                            error.kind == ErrorKind::kAborted, foreign});
    // The answer to another request leads to a probe, which says for sure.
    if (foreign && outcome.probed && handlers_.owned) handlers_.owned(host, error.message);
    return;
  }
  stuck_.erase(host);
  if (outcome.probed && handlers_.owned) handlers_.owned(host, "");
  if (outcome.probed) return step(copies::HostProbed{task, outcome.shares, outcome.whole});
  step(copies::TaskDone{task});
}

void RunCopies::perform(const copies::ProbeHost& o) {
  begin(o.task, o.host, [run_dir = options_.run_dir, probe = probe_](HostFiles& host) -> Outcome {
    const auto own = own_identity(run_dir, probe);
    if (!own) return {tl::unexpected<Error>(own.error())};
    const auto look = look_at(host, probe);
    if (!look) return {tl::unexpected<Error>(look.error()), true};
    const bool shares = look->identity == *own;
    if (!shares) std::ignore = host.ask<wire::FileDone>(wire::FileRemove{probe});
    return {{}, true, shares, look->whole};
  });
}

void RunCopies::perform(const copies::FetchPart& o) {
  begin(o.task, o.part.host,
        [run_dir = options_.run_dir, unfinished = o.unfinished,
         files = o.part.files](HostFiles& host) -> Outcome {
          return {fetch_unfinished(host, run_dir, unfinished, files)};
        });
}

void RunCopies::perform(const copies::PushCopy& o) {
  begin(o.task, o.host,
        [run_dir = options_.run_dir, name = o.name, unfinished = o.unfinished](HostFiles& host)
            -> Outcome { return {push_checkpoint(host, run_dir, name, unfinished)}; });
}

void RunCopies::perform(const copies::CleanHost& o) {
  begin(o.task, o.host, [keep = o.keep, up_to = o.up_to](HostFiles& host) -> Outcome {
    return {clean_checkpoints(host, keep, up_to)};
  });
}

void RunCopies::perform(const copies::FetchCopy& o) {
  begin(o.task, o.host, [run_dir = options_.run_dir, name = o.name](HostFiles& host) -> Outcome {
    return {fetch_checkpoint(host, run_dir, name)};
  });
}

void RunCopies::perform(const copies::CancelTask& o) {
  const auto running = running_.find(o.task);
  if (running != running_.end()) *running->second.stop = true;
}

void RunCopies::perform(const copies::TellGathered& o) {
  const auto asked = gathering_.extract(o.number);
  if (!asked.empty()) asked.mapped()(o.error);
}

void RunCopies::perform(const copies::TellReached& o) {
  const auto asked = reaching_.extract(o.number);
  if (!asked.empty()) asked.mapped()(o.error);
}

// A host that is not there may have a checkpoint, too.
void RunCopies::perform(const copies::TellFound& o) {
  copies::TellFound found = o;
  for (const auto& [endpoint, address] : addresses_) {
    if (!machine_.knows(endpoint)) found.silent.push_back(endpoint + " is not there");
  }
  if (const auto then = std::exchange(finding_, nullptr)) then(found);
}

void RunCopies::perform(const copies::PublishCopyNote& o) {
  if (handlers_.note) handlers_.note(o.kind, o.text);
}

}  // namespace antdt::jobd
