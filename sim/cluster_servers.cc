// What servers and their workers have around them: the sockets between them, and
// where slices of the model are kept.
#include <algorithm>

#include "sim/cluster.h"
#include "sim/servers/ps_server.h"

namespace antdt::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

}  // namespace

std::uint64_t Cluster::new_socket(const Program& of) {
  sockets_.push_back(of.member());
  return sockets_.size() - 1;
}

// In order, whatever else happens; what finds no room, or nobody, is lost.
void Cluster::carry(const Program& from, const std::shared_ptr<Program>& to,
                    const std::string& what, Deliver deliver) {
  const auto name = [](const Program& p) {
    return fmt::format("{}.{}", p.member().worker, p.member().attempt);
  };
  const std::string link = name(from) + ">" + (to ? name(*to) : "nobody");
  Rng& rng = world_.rng();
  const Faults none;
  const Faults& f = faults_over_ ? none : options_.faults;
  if (!to || (f.lose > 0 && rng.chance(f.lose))) return world_.say("{} lost: {}", link, what);
  Duration delay = rng.time(microseconds(20), milliseconds(1));
  if (f.delay > 0 && rng.chance(f.delay)) delay = rng.time(milliseconds(1), seconds(5));
  MonoTime& last = last_delivery_[link];
  last = std::max(last, world_.now() + delay);
  world_.at(last, [this, link, what, here = from.host(), to, deliver = std::move(deliver)] {
    if (!to->alive()) return;
    if (!reaches(here, to->host())) return world_.say("{} cut: {}", link, what);
    world_.say("{} {}", link, what);
    deliver(*to);
  });
}

void Cluster::ask(const Program& from, const std::string& endpoint, PsPacket packet) {
  const auto all = programs();
  const auto to = std::ranges::find_if(all, [&](const auto& p) {
    return PsServer::endpoint_of(p->member(), p->host()) == endpoint;
  });
  const std::string what = world_.tracing() ? sim::describe(packet) : "";
  carry(from, to == all.end() ? nullptr : *to, what,
        [packet = std::move(packet)](Program& server) { server.asked(packet); });
}

void Cluster::answer(const Program& from, PsAnswer answer) {
  const auto all = programs();
  const auto to = std::ranges::find(all, sockets_.at(answer.socket), &Program::member);
  const std::string what = world_.tracing() ? sim::describe(answer) : "";
  carry(from, to == all.end() ? nullptr : *to, what,
        [answer = std::move(answer)](Program& asker) { asker.answered(answer); });
}

std::string Cluster::write_slices(const std::string& directory, const PsSlices& slices) {
  if (files_.full) return directory + ": no room";
  PsSlices& there = files_.slices[std::string(kRunDirectory) + "/" + directory];
  for (const auto& [slice, image] : slices) there[slice] = image;
  return {};
}

const PsSlices* Cluster::read_slices(const std::string& directory) {
  const auto found = files_.checkpoints.find(directory);
  const bool whole = found != files_.checkpoints.end() && !found->second.damaged;
  static const PsSlices kNothing;
  if (options_.sabotage == Sabotage::kKeepOldState) return &kNothing;
  return whole ? &found->second.slices : nullptr;
}

bool Cluster::loses_child() {
  constexpr double kLost = 0.002;
  return !faults_over_ && options_.faults.worker_kill > 0 && world_.rng().chance(kLost);
}

void Cluster::group_began(Generation generation, const std::string& restore) {
  const auto found = files_.checkpoints.find(restore);
  checks_->group_began(generation,
                       found == files_.checkpoints.end() ? nullptr : &found->second.state.model);
}

}  // namespace antdt::sim
