#include "launcher/start/own_program.h"

#include <utility>

#include "core/role_protocol.h"
#include "core/schema/keys.h"
#include "launcher/config/toml_reader.h"

namespace antdt::launcher {

namespace {

bool is_trainer(const JobConfig& config) {
  const std::vector<std::string>& command = config.roles.worker.command;
  if (command.empty()) return false;
  const std::string& program = command.front();
  return program.substr(program.rfind('/') + 1) == "antdt-trainer";
}

}  // namespace

bool may_have_own_names(const JobConfig& config) {
  return speaks(config.roles.worker.protocol, Protocol::kAntdt) && !is_trainer(config);
}

std::vector<NameProblem> unknown_names(const JobConfig& config) {
  const TrainerSection& t = config.trainer;
  std::vector<NameProblem> found;
  for (const auto& [path, name] :
       {std::pair("trainer.model", &t.model), std::pair("trainer.optimizer", &t.optimizer)}) {
    const schema::Key& key = *schema::find_key(path);
    if (!is_choice(key, *name)) found.push_back({path, not_a_choice(key, *name)});
  }
  for (const auto& [path, name] :
       {std::pair("trainer.reader", &t.reader), std::pair("trainer.metric", &t.metric),
        std::pair("trainer.schedule", &t.schedule)}) {
    if (name->empty()) continue;
    found.push_back({path, fmt::format("there is no '{}' but in a program of one's own, made with "
                                       "the C++ kit: name that program in roles.worker.command, or "
                                       "remove it",
                                       *name)});
  }
  if (is_trainer(config) && !config.user.empty()) {
    found.push_back({"user",
                     "is for a program of one's own, and antdt-trainer reads nothing of it: name "
                     "that program in roles.worker.command, or remove [user]"});
  }
  return found;
}

}  // namespace antdt::launcher
