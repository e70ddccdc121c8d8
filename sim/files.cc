#include "sim/files.h"

#include <fmt/format.h>

#include "sim/servers/tally.h"

namespace antdt::sim {
namespace {

constexpr std::size_t kKeep = 3;

}  // namespace

std::string SharedFiles::write(const std::string& directory, const Trained& state) {
  written.erase(directory);
  if (full) return directory + ": no room";
  written[directory] = state;
  return {};
}

std::string SharedFiles::write(const std::string& directory, const PsSlices& own) {
  if (full) return directory + ": no room";
  PsSlices& there = slices[std::string(kRunDirectory) + "/" + directory];
  for (const auto& [slice, image] : own) there[slice] = image;
  return {};
}

const Trained* SharedFiles::read(const std::string& name) const {
  const auto found = checkpoints.find(name);
  const bool whole = found != checkpoints.end() && !found->second.damaged;
  return whole ? &found->second.state : nullptr;
}

const PsSlices* SharedFiles::read_slices(const std::string& name) const {
  static const PsSlices kNothing;
  if (unread) return &kNothing;
  const auto found = checkpoints.find(name);
  const bool whole = found != checkpoints.end() && !found->second.damaged;
  return whole ? &found->second.slices : nullptr;
}

const Model* SharedFiles::model_in(const std::string& name) const {
  const auto found = checkpoints.find(name);
  return found == checkpoints.end() ? nullptr : &found->second.state.model;
}

ctl::job::CheckpointStored SharedFiles::store(
    const ctl::job::StoreCheckpoint& order, const ctl::JobSpec& spec,
    const std::function<void(const Checkpoint&)>& stored) {
  const std::string name =
      fmt::format("l{:05}-s{:08}-g{:05}-{}.{}", order.lineage, order.written.step, order.generation,
                  order.writer.worker, order.writer.attempt);
  const std::string error = keep(order, name, spec, stored);
  if (!error.empty()) {
    written.erase(order.written.directory);
    slices.erase(order.written.directory);
  }
  return {order.written.number, order.written.step, error.empty() ? name : "", error,
          order.generation};
}

std::string SharedFiles::keep(const ctl::job::StoreCheckpoint& order, const std::string& name,
                              const ctl::JobSpec& spec,
                              const std::function<void(const Checkpoint&)>& stored) {
  const bool of_servers = spec.servers > 0;
  if (of_servers && !take_slices(order)) {
    return "not all of its slices are there";
  }
  const auto found = written.find(order.written.directory);
  if (checkpoints.contains(name)) {
    written.erase(order.written.directory);
    return {};
  }
  if (found == written.end()) return "no such directory";
  if (full) return "no room for its manifest";
  auto& kept = checkpoints[name] = {
      std::move(found->second), {}, order.lineage, order.ledger_image, order.accounts_image};
  written.erase(found);
  if (of_servers) kept.slices = std::move(slices.extract(order.written.directory).mapped());
  stored(kept);
  while (checkpoints.size() > kKeep) checkpoints.erase(checkpoints.begin());
  return {};
}

// Joins the parts that the servers wrote into one checkpoint.
bool SharedFiles::take_slices(const ctl::job::StoreCheckpoint& order) {
  const auto found = slices.find(order.written.directory);
  if (found == slices.end() || found->second.size() != order.written.files.size()) return false;
  if (written.contains(order.written.directory)) return true;  // the dense part
  Trained& state = written[order.written.directory];
  state.model = tally_of(found->second, records);
  state.step = order.written.step;
  return true;
}

void SharedFiles::remove_unfinished(ctl::copies::Age up_to) {
  const auto is_over = [&](const auto& left) {
    const std::string& directory = left.first;
    const auto age = ctl::copies::age_of(directory.substr(directory.rfind('/') + 1));
    return age && *age <= up_to;
  };
  std::erase_if(written, is_over);
  std::erase_if(slices, is_over);
}

ctl::job::CheckpointFound SharedFiles::newest() const {
  ctl::job::CheckpointFound found;
  for (const auto& [name, checkpoint] : checkpoints) {
    if (checkpoint.damaged) continue;
    found = {name, checkpoint.state.step, checkpoint.ledger_image, checkpoint.accounts_image};
  }
  return found;
}

}  // namespace antdt::sim
