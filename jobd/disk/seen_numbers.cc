#include "jobd/disk/seen_numbers.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/os/fs.h"
#include "launcher/start/skips.h"

namespace antdt::jobd {
namespace {

namespace fs = std::filesystem;

// The new numbers are multiples of these, so that a reader of "attempt 101" notices the gap. At
// least half as many numbers are left out, which is more than a run uses between its last
// checkpoint, log or event that reached the disk and its end.
constexpr std::uint32_t kAttempts = 100;
constexpr std::uint64_t kGenerations = 1000;
constexpr std::uint64_t kIncarnations = 100;
constexpr std::uint64_t kLineages = 10;

template <class T>
T round_above(T seen, T of) {
  return static_cast<T>(((seen + of / 2) / of + 1) * of);
}

template <class Number>
void raise(Number& number, Number other) {
  number = std::max(number, other);
}

template <class F>
void each_name(const std::string& directory, F f) {
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    f(it->path().filename().string());
  }
}

std::uint64_t number_in(const nlohmann::json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_number_unsigned() ? found->get<std::uint64_t>() : 0;
}

}  // namespace

void SeenNumbers::at_lineage(Lineage other) { raise(lineage, other); }

void SeenNumbers::at_attempt(WorkerId worker, Attempt attempt) { raise(attempts[worker], attempt); }

void SeenNumbers::in_checkpoint_name(std::string_view name) {
  unsigned long long step = 0, l = 0, g = 0;
  char role = 0;
  unsigned index = 0, attempt = 0;
  const int read = std::sscanf(std::string(name).c_str(), "s%llu-l%llu-g%llu-%c%u.%u", &step, &l,
                               &g, &role, &index, &attempt);
  if (read != 6 || (role != 'w' && role != 's')) return;
  raise(lineage, Lineage{l});
  raise(generation, Generation{g});
  at_attempt({role, index}, Attempt{attempt});
}

void SeenNumbers::in_log_name(std::string_view name) {
  char role = 0;
  unsigned index = 0, attempt = 0;
  const int read = std::sscanf(std::string(name).c_str(), "%c%u.%u.", &role, &index, &attempt);
  if (read == 3 && (role == 'w' || role == 's')) at_attempt({role, index}, Attempt{attempt});
}

void SeenNumbers::in_event(std::string_view line) {
  const auto event = nlohmann::json::parse(line, nullptr, false);
  if (!event.is_object()) return;
  raise(incarnation, Incarnation{number_in(event, "incarnation")});
  raise(lineage, Lineage{number_in(event, "lineage")});
  const auto time = event.find("time_s");
  if (time != event.end() && time->is_number()) raise(seconds, time->get<double>());
}

void SeenNumbers::in_summary(std::string_view text) {
  const auto summary = nlohmann::json::parse(text, nullptr, false);
  if (!summary.is_object()) return;
  raise(lineage, Lineage{number_in(summary, "lineages")});
  raise(generation, Generation{number_in(summary, "generations")});
  raise(incarnation, Incarnation{number_in(summary, "incarnations")});
}

void SeenNumbers::in_ledger(const shard_server::Ledger& ledger) {
  for (const auto& [worker, holder] : ledger.holders()) {
    at_attempt(worker, holder.attempt);
    raise(generation, holder.generation);
  }
}

SeenNumbers seen_in(const std::string& run_dir) {
  SeenNumbers seen;
  each_name(run_dir + "/checkpoints", [&](const std::string& n) { seen.in_checkpoint_name(n); });
  each_name(run_dir + "/logs", [&](const std::string& n) { seen.in_log_name(n); });
  each_name(run_dir, [&](const std::string& name) {
    if (!name.starts_with("summary.") || !name.ends_with(".json")) return;
    if (const auto text = read_file(run_dir + "/" + name)) seen.in_summary(*text);
  });
  for (const char* part : {"/events.jsonl.1", "/events.jsonl"}) {
    std::ifstream events(run_dir + part);
    for (std::string line; std::getline(events, line);) seen.in_event(line);
  }
  if (const auto skips = launcher::read_skips(run_dir)) {
    for (const launcher::Skip& skip : *skips) seen.at_lineage(Lineage{skip.lineage});
  }
  return seen;
}

Incarnation incarnation_above(const SeenNumbers& seen) {
  return Incarnation{round_above(seen.incarnation.value, kIncarnations) + 1};
}

namespace {

// Adds the processes of a role: as many as are wanted now, and all that were seen.
void add_ended(const SeenNumbers& seen, char role, std::uint32_t wanted,
               std::vector<ctl::WorkerProcessImage>& processes) {
  std::map<WorkerId, Attempt> attempts;
  for (std::uint32_t i = 0; i < wanted; ++i) attempts.try_emplace({role, i});
  for (const auto& [id, attempt] : seen.attempts) {
    if (id.role == role) attempts[id] = attempt;
  }
  for (const auto& [id, attempt] : attempts) {
    ctl::WorkerProcessImage process;
    process.place.worker = id;
    process.attempt = Attempt{round_above(attempt.value, kAttempts)};
    process.state = id.index < wanted ? ctl::WorkerProcess::kExited : ctl::WorkerProcess::kRemoved;
    processes.push_back(std::move(process));
  }
}

}  // namespace

ctl::JobImage image_above(const SeenNumbers& seen, std::uint32_t workers, std::uint32_t servers) {
  ctl::JobImage image;
  // Nobody is left of this base, so training can only go on from a checkpoint, which begins the
  // next lineage.
  const Generation base{round_above(seen.generation.value, kGenerations)};
  image.membership.generation = image.membership.base = base;
  image.membership.lineage = Lineage{round_above(seen.lineage.value, kLineages)};
  image.lifecycle.state = static_cast<std::uint8_t>(ctl::JobState::kStopped);
  image.lifecycle.made_progress = true;
  image.lifecycle.checkpoints_stored = 1;
  image.lifecycle.seconds = seen.seconds;
  add_ended(seen, 'w', workers, image.lifecycle.workers);
  add_ended(seen, 's', servers, image.lifecycle.workers);
  return image;
}

}  // namespace antdt::jobd
