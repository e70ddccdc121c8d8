#include "launcher/start/own_program.h"

#include <utility>

#include "core/role_protocol.h"
#include "core/schema/keys.h"
#include "launcher/config/toml_reader.h"

namespace antdt::launcher {

namespace {

constexpr const char* kTrainer = "antdt-trainer";
constexpr const char* kInstrument = "antdt-instrument";

bool is_trainer(const JobConfig& config) {
  const std::vector<std::string>& command = config.roles.worker.command;
  return !command.empty() && is_built_in(command.front());
}

}  // namespace

bool is_instrument(const std::string& model) {
  return model == "tally" || model == "tally3" || model == "emulated";
}

bool is_built_in(const std::string& program) {
  const std::string name = program.substr(program.rfind('/') + 1);
  return name == kTrainer || name == kInstrument;
}

void choose_built_in(JobConfig& config) {
  std::vector<std::string>& command = config.roles.worker.command;
  if (!speaks(config.roles.worker.protocol, Protocol::kAntdt) || command.empty()) return;
  if (command.front() == kTrainer && is_instrument(config.trainer.model)) {
    command.front() = kInstrument;
  }
}

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
