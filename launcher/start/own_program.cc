#include "launcher/start/own_program.h"

#include <string_view>
#include <utility>

#include "core/role_protocol.h"
#include "core/schema/keys.h"
#include "launcher/config/toml_reader.h"

namespace antdt::launcher {

namespace {

constexpr const char* kTrainer = "antdt-trainer";
constexpr const char* kInstrument = "antdt-instrument";

bool is_called(const std::string& program, std::string_view name) {
  return program.substr(program.rfind('/') + 1) == name;
}

bool is_trainer(const JobConfig& config) {
  const std::vector<std::string>& command = config.roles.worker.command;
  return !command.empty() && is_built_in(command.front());
}

}  // namespace

bool is_instrument(const std::string& model) {
  return model == "tally" || model == "tally3" || model == "emulated";
}

bool is_built_in(const std::string& program) {
  return is_called(program, kTrainer) || is_called(program, kInstrument);
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
  if (is_trainer(config) && is_called(config.roles.worker.command.front(), kInstrument) &&
      !is_instrument(t.model)) {
    found.push_back({"trainer.model",
                     fmt::format("'{}' needs LibTorch, which antdt-instrument does without: write "
                                 "roles.worker.command = [\"antdt-trainer\"]",
                                 t.model)});
  }
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
