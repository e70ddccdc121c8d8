// The models that are built in, registered as a program's own are.
#pragma once

#include <antdt/kit/parts.h>

#include <map>
#include <string>

namespace antdt::trainer {

// By the names that trainer.model has for them.
[[nodiscard]] std::map<std::string, kit::ModelFactory> built_in_models();

}  // namespace antdt::trainer
