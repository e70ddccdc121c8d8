#include "sim/fleet/groups/row_servers.h"

#include <utility>
#include <variant>

namespace antdt::fleet {

void RowServers::joined(Worker& server) {
  wire::Join join;
  join.pid = server.pid();
  join.collective = false;
  join.endpoint = to_string(server.member.worker);
  player_.say(server, std::move(join));
}

void RowServers::hear(Worker& server, Generation generation, const ctl::job::WorkerMessage& body) {
  std::visit([&](const auto& order) { on(server, generation, order); }, body);
}

void RowServers::on(Worker& server, Generation generation, const wire::PsServe& serve) {
  server.generation = generation;
  wire::PsServing serving;
  serving.number = serve.number;
  // What a worker that leaves has trained is the members' business.
  if (serve.index == 0) {
    for (const wire::PsMember& left : serve.leaving) {
      serving.left.push_back({left.worker, left.attempt, 0, {}});
    }
  }
  player_.say(server, std::move(serving));
}

void RowServers::on(Worker& server, Generation generation, const wire::PsCut& cut) {
  if (generation != server.generation) return;
  ordered_[server.member] = cut.number;
  if (cut.number == number_) save(server);
}

void RowServers::on(Worker& server, Generation, const wire::Leave& leave) {
  player_.leave(server, leave.code);
}

void RowServers::written(std::uint64_t number, Step step) {
  number_ = number;
  step_ = step;
  for (const auto& [member, ordered] : ordered_) {
    Worker& server = player_.worker(member.worker);
    if (ordered == number && server.alive && server.member == member) save(server);
  }
}

void RowServers::save(Worker& server) {
  wire::PsSaved saved;
  saved.number = number_;
  saved.version = step_.value;
  player_.say(server, std::move(saved));
}

}  // namespace antdt::fleet
