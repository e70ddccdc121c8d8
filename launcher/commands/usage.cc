#include "launcher/commands/usage.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "launcher/config/suggest.h"

namespace antdt::cli {
namespace {

std::vector<std::string> commands_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(command->get_name());
  }
  return names;
}

// The first word that should name a command of `app`.
std::string_view first_word(int argc, const char* const* argv, int after) {
  for (int i = after; i < argc; ++i) {
    if (!std::string_view(argv[i]).starts_with('-')) return argv[i];
  }
  return {};
}

}  // namespace

std::string usage_error(const CLI::App& app, const CLI::Error& error, int argc,
                        const char* const* argv) {
  const CLI::App* command = &app;
  std::string name = app.get_name();
  int depth = 1;
  while (!command->get_subcommands().empty()) {
    command = command->get_subcommands().front();
    name += " " + command->get_name();
    ++depth;
  }
  const std::vector<std::string> known = commands_of(*command);
  const std::string_view word = first_word(argc, argv, depth);
  std::string what = error.what();
  if (!known.empty() && !word.empty() && std::ranges::find(known, word) == known.end()) {
    const std::string near = launcher::nearest(word, known);
    what = fmt::format("there is no command '{}'{}", word,
                       near.empty() ? "" : fmt::format(": did you mean '{}'?", near));
  }
  return fmt::format("{}: {} (see {} --help)\n", name, what, name);
}

CLI::Validator at_least_one() {
  return {[](const std::string& text) {
            std::uint64_t value = 0;
            const auto [end, error] =
                std::from_chars(text.data(), text.data() + text.size(), value);
            const bool whole = error == std::errc() && end == text.data() + text.size();
            return whole && value > 0 ? std::string()
                                      : fmt::format("'{}' is no whole number of at least 1", text);
          },
          "POSITIVE"};
}

bool wants_colours(int descriptor) {
  const char* no_colour = std::getenv("NO_COLOR");
  return ::isatty(descriptor) == 1 && (no_colour == nullptr || *no_colour == '\0');
}

}  // namespace antdt::cli
