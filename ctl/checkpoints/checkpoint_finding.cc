// How the newest checkpoint of all hosts is found, before training goes on from it: the part of
// CheckpointCopies from NewestWanted to TellFound.
#include <fmt/format.h>

#include <optional>
#include <set>
#include <utility>

#include "ctl/checkpoints/checkpoint_copies.h"

namespace antdt::ctl::copies {

void CheckpointCopies::on(const NewestWanted& e, Effects& out) {
  if (finding_ && finding_->task) drop_task(*finding_->task, out);
  finding_ = Finding{e.newest, {}, {}};
  cleaning_ = Cleaning::kChoosing;
}

// The newest that some host has whole and this one has not, until its host does not have it or
// has failed too often; when all are tried, what is here.
void CheckpointCopies::find_newer(Effects& out) {
  if (!finding_ || finding_->task || !all_asked()) return;
  const auto here = order_of(finding_->newest);
  std::optional<std::pair<std::string, std::string>> best;  // host, name
  for (const auto& [host, state] : hosts_) {
    std::set<std::string> names = state.whole;
    names.insert(state.doubted.begin(), state.doubted.end());
    for (const std::string& name : names) {
      const auto order = order_of(name);
      const bool newer = order && state.place == Place::kApart && (!here || *order > *here) &&
                         (!best || *order > *order_of(best->second));
      const auto tried = finding_->tries.find({host, name});
      const bool over =
          tried != finding_->tries.end() && (tried->second.gone || tried->second.times == kTries);
      if (newer && !over) best = {host, name};
    }
  }
  if (!best) return end_finding("", out);
  if (!ready(hosts_.at(best->first))) return;
  ++finding_->tries[*best].times;
  if (fetch_said_.insert(*best).second) {
    out.emplace_back(PublishCopyNote{
        "checkpoint-fetched", fmt::format("checkpoint {} is not whole here and is fetched from {}",
                                          best->second, best->first)});
  }
  finding_->task = begin(best->first, FetchCopy{0, best->first, best->second}, out);
}

// from: finding, to: none. `fetched`: the name; "": nothing newer could be fetched.
void CheckpointCopies::end_finding(const std::string& fetched, Effects& out) {
  TellFound found;
  found.fetched = !fetched.empty();
  for (const auto& [place, tried] : finding_->tries) {
    const auto& [host, name] = place;
    if (tried.gone || (found.fetched && order_of(name) <= order_of(fetched))) continue;
    if (!hosts_.contains(host)) {
      found.silent.push_back(fmt::format("checkpoint {} is on {}, which was lost", name, host));
    } else {
      found.unfetched.push_back(
          fmt::format("checkpoint {} cannot be fetched from {}: {}", name, host, tried.error));
    }
  }
  for (const auto& [name, host] : hosts_) {
    if (host.place != Place::kProbing) continue;
    found.silent.push_back(
        fmt::format("{} does not say whether it has checkpoints: {}", name, host.trouble));
  }
  finding_.reset();
  out.emplace_back(std::move(found));
}

}  // namespace antdt::ctl::copies
