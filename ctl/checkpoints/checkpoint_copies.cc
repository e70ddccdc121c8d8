#include "ctl/checkpoints/checkpoint_copies.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "core/check.h"

namespace antdt::ctl::copies {

void CheckpointCopies::step(const Input& input, MonoTime now, Effects& out) {
  now_ = now;
  std::visit([&](const auto& e) { on(e, out); }, input);
  go_on(out);
  const std::string broken = broken_invariant();
  ANTDT_CHECK(broken.empty(), "{}", broken);
}

void CheckpointCopies::go_on(Effects& out) {
  probe_hosts(out);
  answer_needs(out);
  fetch_parts(out);
  find_newer(out);
  push_copies(out);
  clean_hosts(out);
}

// ----------------------------------------------------------------------- tasks

void CheckpointCopies::drop_task(TaskId task, Effects& out) {
  const auto found = tasks_.find(task);
  if (found == tasks_.end()) return;
  if (const auto host = hosts_.find(found->second.host);
      host != hosts_.end() && host->second.writing == task) {
    host->second.writing.reset();
  }
  tasks_.erase(found);
  out.emplace_back(CancelTask{task});
}

// from: any task, to: none. The host has what it was to have.
void CheckpointCopies::on(const TaskDone& e, Effects& out) {
  const auto found = tasks_.find(e.task);
  if (found == tasks_.end()) return;  // of a host that was lost meanwhile
  const Task task = std::move(found->second);
  tasks_.erase(found);
  Host& host = hosts_.at(task.host);
  if (host.writing == e.task) host.writing.reset();
  host.pause = kFirstPause;
  host.trouble.clear();
  if (const auto* push = std::get_if<PushCopy>(&task.what)) {
    host.whole.insert(push->name);
    host.doubted.erase(push->name);
    if (const auto doubt = doubted_.find(push->name); doubt != doubted_.end()) {
      doubt->second.insert(task.host);
    }
    host.clean = false;
  } else if (const auto* clean = std::get_if<CleanHost>(&task.what); clean && clean->keep) {
    for (auto* const names : {&host.whole, &host.doubted}) {
      std::erase_if(*names, [&](const std::string& name) {
        return std::ranges::find(*clean->keep, name) == clean->keep->end();
      });
    }
  } else if (std::holds_alternative<FetchPart>(task.what) && gathering_) {
    std::erase(gathering_->tasks, e.task);
    if (gathering_->tasks.empty() && gathering_->waiting.empty()) end_gathering("", out);
  } else if (const auto* back = std::get_if<FetchCopy>(&task.what); back && finding_) {
    if (!is_kept(back->name)) kept_.push_back(back->name);
    std::ranges::sort(kept_, {}, order_of);
    fetch_said_.clear();
    end_finding(back->name, out);
  }
}

// from: any task, to: none. What is still wanted begins again after the host's pause.
void CheckpointCopies::on(const TaskFailed& e, Effects& out) {
  const auto found = tasks_.find(e.task);
  if (found == tasks_.end()) return;
  const Task task = std::move(found->second);
  tasks_.erase(found);
  Host& host = hosts_.at(task.host);
  host.asked = true;
  if (host.writing == e.task) host.writing.reset();
  host.not_before = now_ + host.pause;
  host.pause = std::min<Duration>(2 * host.pause, kLongestPause);
  if (std::exchange(host.trouble, e.error) != e.error) {
    out.emplace_back(PublishCopyNote{"copy-failed", fmt::format("{}: {}", task.host, e.error)});
  }
  if (const auto* fetch = std::get_if<FetchPart>(&task.what); fetch != nullptr && gathering_) {
    std::erase(gathering_->tasks, e.task);
    if (e.gone || e.full) return end_gathering(fmt::format("{}: {}", task.host, e.error), out);
    gathering_->waiting.push_back(fetch->part);
  } else if (const auto* back = std::get_if<FetchCopy>(&task.what); back && finding_) {
    finding_->task.reset();
    Finding::Tried& tried = finding_->tries[{back->host, back->name}];
    tried.gone = e.gone;
    tried.error = e.error;
  } else if (const auto* push = std::get_if<PushCopy>(&task.what)) {
    push_failed(*push, e, out);
  }
  if (e.foreign) host_is_anothers(task.host, e.error, out);
}

// Its run directory is another job's. It is probed again and again, in case that is removed; nobody
// waits for it.
void CheckpointCopies::host_is_anothers(const std::string& name, const std::string& error,
                                        Effects& out) {
  Host& host = hosts_.at(name);
  host.place = Place::kProbing;
  host.whole.clear();
  host.doubted.clear();
  const std::string why = fmt::format("{}: {}", name, error);
  std::erase_if(needs_, [&](const Need& need) {
    if (need.what.host != name) return false;
    out.emplace_back(TellReached{need.what.number, why});
    return true;
  });
  if (gathering_ &&
      std::ranges::find(gathering_->waiting, name, &Part::host) != gathering_->waiting.end()) {
    end_gathering(why, out);
  }
}

// A reader on another host may have room. What is damaged here would be sent for ever.
void CheckpointCopies::push_failed(const PushCopy& push, const TaskFailed& e, Effects& out) {
  if (e.gone && ++hosts_.at(push.host).spoilt[push.name] == kTries) {
    out.emplace_back(PublishCopyNote{
        "copy-failed",
        fmt::format(
            "checkpoint {} is not copied to {} any more: {} times what arrived there was not "
            "what its manifest says. Are its files on the launching host damaged?",
            push.name, push.host, kTries)});
  }
  for (Need& need : needs_) {
    const bool waits = need.what.host == push.host && need.what.name == push.name;
    if (!waits || ++need.failures < kTries) continue;
    out.emplace_back(TellReached{need.what.number, fmt::format("{}: {}", push.host, e.error)});
  }
  std::erase_if(needs_, [](const Need& need) { return need.failures == kTries; });
}

// ----------------------------------------------------------------------- hosts

// from: away, to: probing. From any other: its link or its agent is a new one, and its files are
// where they were; what was under way begins again.
void CheckpointCopies::on(const HostAppeared& e, Effects& out) {
  std::vector<TaskId> broken;
  for (const auto& [id, task] : tasks_) {
    if (task.host == e.host) broken.push_back(id);
  }
  for (const TaskId id : broken) {
    const auto* fetch = std::get_if<FetchPart>(&tasks_.at(id).what);
    if (fetch != nullptr && gathering_ && std::erase(gathering_->tasks, id) > 0) {
      gathering_->waiting.push_back(fetch->part);
    }
    if (finding_ && finding_->task == id) finding_->task.reset();
    drop_task(id, out);
  }
  hosts_[e.host] = Host{};
}

// from: any, to: away. Nothing of it counts any more; a part that lay there alone is lost.
void CheckpointCopies::on(const HostVanished& e, Effects& out) {
  std::vector<TaskId> lost;
  for (const auto& [id, task] : tasks_) {
    if (task.host == e.host) lost.push_back(id);
  }
  bool gathered_there = false;
  for (const TaskId id : lost) {
    if (gathering_) gathered_there = std::erase(gathering_->tasks, id) > 0 || gathered_there;
    if (finding_ && finding_->task == id) finding_->task.reset();
    drop_task(id, out);
  }
  hosts_.erase(e.host);
  if (gathering_) {
    gathered_there = gathered_there || std::ranges::any_of(gathering_->waiting, [&](const Part& p) {
                       return p.host == e.host;
                     });
  }
  if (gathered_there) {
    end_gathering(fmt::format("{} was lost before what was written there had been copied", e.host),
                  out);
  }
  std::erase_if(needs_, [&](const Need& need) {
    if (need.what.host != e.host) return false;
    out.emplace_back(TellReached{need.what.number, fmt::format("{} was lost", e.host)});
    return true;
  });
}

void CheckpointCopies::probe_hosts(Effects& out) {
  for (auto& [name, host] : hosts_) {
    if (host.place != Place::kProbing || host.writing || !ready(host)) continue;
    host.writing = begin(name, ProbeHost{0, name}, out);
  }
}

// from: probing, to: shares or apart.
void CheckpointCopies::on(const HostProbed& e, Effects&) {
  const auto found = tasks_.find(e.task);
  if (found == tasks_.end()) return;
  const std::string host_name = found->second.host;
  Host& host = hosts_.at(host_name);
  tasks_.erase(found);
  host.writing.reset();
  host.asked = true;
  host.place = e.shares ? Place::kShares : Place::kApart;
  // What a host finds in the launching host's directory is the launching host's copy.
  for (const std::string& name : e.shares ? std::vector<std::string>{} : e.whole) {
    const auto doubt = doubted_.find(name);
    const bool counts = doubt == doubted_.end() || doubt->second.contains(host_name);
    (counts ? host.whole : host.doubted).insert(name);
  }
  host.pause = kFirstPause;
  host.trouble.clear();
}

bool CheckpointCopies::any_apart() const {
  return std::ranges::any_of(hosts_, [](const auto& h) { return h.second.place == Place::kApart; });
}

bool CheckpointCopies::shares(const std::string& host) const {
  const auto found = hosts_.find(host);
  return found != hosts_.end() && found->second.place == Place::kShares;
}

bool CheckpointCopies::free_to_write(const Host& host) const {
  return host.place == Place::kApart && !host.writing && ready(host);
}

// -------------------------------------------------------------------- gathering

void CheckpointCopies::on(const PartsWritten& e, Effects& out) {
  if (gathering_ && gathering_->number == e.number && gathering_->unfinished == e.unfinished) {
    return;  // said again
  }
  if (gathering_) end_gathering("a later one was written", out);
  const auto is_it = [&](const auto& kept) { return kept.second == e.unfinished; };
  if (std::ranges::any_of(unfinished_, is_it)) {  // said again, after it was stored
    out.emplace_back(TellGathered{e.number, ""});
    return;
  }
  gathering_ = Gathering{e.number, e.unfinished, e.parts, {}};
  writers_.clear();
  for (const Part& part : e.parts) writers_.insert(part.host);
}

void CheckpointCopies::fetch_parts(Effects& out) {
  if (!gathering_) return;
  std::vector<Part> later;
  std::string lost;
  for (Part& part : std::exchange(gathering_->waiting, {})) {
    const auto host = hosts_.find(part.host);
    if (host == hosts_.end()) {
      lost = part.host;
    } else if (host->second.place == Place::kProbing || !ready(host->second)) {
      later.push_back(std::move(part));
    } else if (host->second.place == Place::kApart) {
      const std::string name = part.host;
      gathering_->tasks.push_back(
          begin(name, FetchPart{0, gathering_->unfinished, std::move(part)}, out));
    }
  }
  gathering_->waiting = std::move(later);
  if (!lost.empty()) {
    return end_gathering(fmt::format("{}, where a part of it was written, is not there", lost),
                         out);
  }
  if (gathering_->tasks.empty() && gathering_->waiting.empty()) end_gathering("", out);
}

// from: gathering, to: gathered or failed.
void CheckpointCopies::end_gathering(std::string error, Effects& out) {
  const Gathering ended = std::move(*gathering_);
  gathering_.reset();
  for (const TaskId task : ended.tasks) drop_task(task, out);
  out.emplace_back(TellGathered{ended.number, std::move(error)});
}

// ------------------------------------------------------------------------ copies

void CheckpointCopies::on(const CheckpointsListed& e, Effects& out) {
  kept_ = e.names;
  knows_kept_ = true;
  if (!e.stored.empty()) {
    if (cleaning_ == Cleaning::kNotYet) cleaning_ = Cleaning::kMay;
    unfinished_[e.stored] = e.unfinished;
    wrote_[e.stored] = std::exchange(writers_, {});
    over_ = age_of(e.unfinished).value_or(Age{});
  }
  const auto is_old = [&](const auto& old) { return !is_kept(old.first); };
  std::erase_if(unfinished_, is_old);
  std::erase_if(wrote_, is_old);
  for (auto& [name, host] : hosts_) {
    const auto* push =
        host.writing ? std::get_if<PushCopy>(&tasks_.at(*host.writing).what) : nullptr;
    if (push != nullptr && !is_kept(push->name)) drop_task(*host.writing, out);
  }
  for (auto& [name, host] : hosts_) host.clean = false;
}

void CheckpointCopies::on(const TrainingDone& e, Effects& out) {
  over_ = {std::numeric_limits<std::uint64_t>::max(), 0};
  cleaning_ = Cleaning::kMay;
  on(CheckpointsListed{e.names}, out);
}

bool CheckpointCopies::is_kept(const std::string& name) const {
  return std::ranges::find(kept_, name) != kept_.end();
}

std::uint32_t CheckpointCopies::copies_of(const std::string& name) const {
  std::uint32_t copies = is_kept(name) ? 1 : 0;
  for (const auto& [_, host] : hosts_) copies += host.whole.contains(name) ? 1 : 0;
  return copies;
}

// Those that have files of it, then who has least to do.
std::vector<std::string> CheckpointCopies::order_to_push(const std::string& name) const {
  std::vector<std::string> order;
  const auto wrote = wrote_.find(name);
  const auto has_files = [&](const std::string& host) {
    return wrote != wrote_.end() && wrote->second.contains(host);
  };
  for (const auto& [host, state] : hosts_) {
    const auto spoilt = state.spoilt.find(name);
    const bool arrives = spoilt == state.spoilt.end() || spoilt->second < kTries;
    if (state.place == Place::kApart && !state.whole.contains(name) && arrives) {
      order.push_back(host);
    }
  }
  std::ranges::stable_partition(order, has_files);
  return order;
}

void CheckpointCopies::push(const std::string& host, const std::string& name, Effects& out) {
  const auto before = unfinished_.find(name);
  // What nobody writes may go whenever it is left unfinished: its number is below all others.
  const std::string unfinished =
      before != unfinished_.end() ? before->second : fmt::format(".tmp-0-{}", name);
  hosts_.at(host).writing = begin(host, PushCopy{0, host, name, unfinished}, out);
}

// Who was not asked yet may have a copy.
bool CheckpointCopies::all_asked() const {
  return std::ranges::all_of(hosts_, [](const auto& h) { return h.second.asked; });
}

// The newest first: of an older one nobody will want another copy soon.
void CheckpointCopies::push_copies(Effects& out) {
  if (!all_asked()) return;
  for (auto name = kept_.rbegin(); name != kept_.rend(); ++name) {
    std::uint32_t have = copies_of(*name);
    for (const auto& [_, task] : tasks_) {
      const auto* under_way = std::get_if<PushCopy>(&task.what);
      if (under_way != nullptr && under_way->name == *name) ++have;
    }
    for (const std::string& host : order_to_push(*name)) {
      if (have >= copies_) break;
      if (!free_to_write(hosts_.at(host)) || is_needed_on(host)) continue;
      push(host, *name, out);
      ++have;
    }
  }
}

// What was given up goes at any time: nobody goes on from it.
void CheckpointCopies::clean_hosts(Effects& out) {
  std::optional<std::vector<std::string>> keep;
  if (!kept_.empty() && cleaning_ == Cleaning::kMay) keep = kept_;
  if (!keep && over_ == Age{}) return;
  for (auto& [name, host] : hosts_) {
    if (host.clean || !free_to_write(host) || is_needed_on(name)) continue;
    host.clean = true;
    host.writing = begin(name, CleanHost{0, name, keep, over_}, out);
  }
}

void CheckpointCopies::on(const CheckpointsGivenUp& e, Effects&) {
  over_ = std::max(over_, e.up_to);
  for (auto& [name, host] : hosts_) host.clean = false;
}

// ----------------------------------------------------------------------- readers

void CheckpointCopies::on(const CheckpointNeeded& e, Effects& out) {
  std::erase_if(needs_, [&](const Need& need) { return need.what.number == e.number; });
  if (!hosts_.contains(e.host)) {
    out.emplace_back(TellReached{e.number, fmt::format("{} is not there", e.host)});
    return;
  }
  needs_.push_back({e});
}

// They may be fetched back none the less: what arrives is compared with its checksums.
void CheckpointCopies::on(const CopiesDoubted& e, Effects&) {
  doubted_[e.name].clear();
  for (auto& [name, host] : hosts_) {
    if (host.whole.erase(e.name) > 0) host.doubted.insert(e.name);
  }
}

bool CheckpointCopies::is_needed_on(const std::string& host) const {
  return std::ranges::any_of(needs_, [&](const Need& need) { return need.what.host == host; });
}

void CheckpointCopies::answer_needs(Effects& out) {
  if (!knows_kept_) return;
  std::erase_if(needs_, [&](const Need& waits) {
    const CheckpointNeeded& need = waits.what;
    Host& host = hosts_.at(need.host);
    if (host.place == Place::kProbing) return false;
    if (host.place == Place::kShares || host.whole.contains(need.name)) {
      out.emplace_back(TellReached{need.number, ""});
      return true;
    }
    if (!is_kept(need.name)) {
      out.emplace_back(TellReached{need.number, fmt::format("{} is not kept", need.name)});
      return true;
    }
    // A copy of another checkpoint waits for this one.
    if (host.writing) {
      const auto* other = std::get_if<PushCopy>(&tasks_.at(*host.writing).what);
      if (other != nullptr && other->name != need.name) drop_task(*host.writing, out);
    }
    if (free_to_write(host)) push(need.host, need.name, out);
    return false;
  });
}

// -------------------------------------------------------------------------- views

bool CheckpointCopies::idle() const {
  return tasks_.empty() && !gathering_ && needs_.empty() && !finding_ && lacking().empty();
}

std::vector<std::string> CheckpointCopies::lacking() const {
  std::vector<std::string> names;
  std::ranges::copy_if(kept_, std::back_inserter(names), [&](const std::string& name) {
    return copies_of(name) < copies_ && !order_to_push(name).empty();
  });
  return names;
}

std::string CheckpointCopies::broken_invariant() const {
  for (const auto& [id, task] : tasks_) {
    if (!hosts_.contains(task.host)) return fmt::format("task {} is of no host", id);
  }
  for (const auto& [name, host] : hosts_) {
    if (host.writing && !tasks_.contains(*host.writing)) {
      return fmt::format("{} waits for a task that is over", name);
    }
    if (host.place == Place::kShares && host.writing) {
      return fmt::format("{} shares the run directory and is written to", name);
    }
  }
  if (gathering_ && gathering_->tasks.empty() && gathering_->waiting.empty()) {
    return "nothing is gathered, and nobody was told";
  }
  for (const auto& [name, host] : hosts_) {
    const bool needed = knows_kept_ && is_needed_on(name);
    if (needed && host.place == Place::kApart && !host.writing && ready(host)) {
      return fmt::format("{} waits for a checkpoint that nobody sends", name);
    }
  }
  return {};
}

}  // namespace antdt::ctl::copies
