// antdt top: all jobs of this user, redrawn in place.
#include "launcher/top/top.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <memory>

#include "launcher/commands/commands.h"
#include "launcher/commands/operate/through_agent.h"
#include "launcher/commands/top/asker.h"
#include "launcher/commands/top/terminal.h"
#include "launcher/commands/usage.h"
#include "launcher/top/screen.h"

namespace antdt::cli {
namespace {

namespace top = launcher::top;

constexpr Duration kRedraw = std::chrono::seconds(1);
constexpr Duration kFirstAnswers = std::chrono::seconds(30);

struct TopOptions {
  AskerOptions ask{{}, "~/.config/antdt"};
  bool once = false;
};

Status show_once(const TopOptions& options) {
  Asker asker(options.ask);
  if (!asker.wait(kFirstAnswers)) {
    return fail(ErrorKind::kUnreachable, "the jobs did not answer within {:.0f} s",
                to_seconds(kFirstAnswers));
  }
  top::Top state;
  for (const top::Input& news : asker.take()) {
    top::step(state, news);
  }
  for (const std::string& line : top::draw_whole(state)) fmt::print("{}\n", line);
  return {};
}

// False: it is to end.
bool take(top::Top& state, const top::Input& input, Asker& asker) {
  const auto effect = top::step(state, input);
  if (!effect) return true;
  if (std::holds_alternative<top::Leave>(*effect)) return false;
  asker.order(std::get<top::Evict>(*effect));
  return true;
}

Status show(const TopOptions& options) {
  ANTDT_TRY(Terminal terminal, Terminal::open());
  Asker asker(options.ask);
  top::Top state;
  const bool colours = wants_colours(STDOUT_FILENO);
  while (true) {
    terminal.draw(top::draw(state, terminal.size(), colours));
    const Terminal::Event event = terminal.wait(kRedraw, asker.news());
    if (event.is_over) return {};
    for (const top::Pressed& key : top::keys_of(event.bytes)) {
      if (!take(state, key, asker)) return {};
    }
    for (const top::Input& news : asker.take()) {
      if (!take(state, news, asker)) return {};
    }
  }
}

}  // namespace

void add_top(CLI::App& app, int& exit_code) {
  const auto options = std::make_shared<TopOptions>();
  CLI::App* command =
      app.add_subcommand("top", "Watch the workers of all your jobs: who is slow, and why");
  command
      ->add_option("--host", options->ask.hosts,
                   "show also what the agent HOST:PORT says; may be repeated")
      ->type_name("HOST:PORT")
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false);
  command->add_option("--keys", options->ask.keys, "with --host: your keys, as cluster.keys")
      ->type_name("DIR")
      ->capture_default_str();
  command->add_flag("--once", options->once,
                    "print it once, as is done where there is no terminal");
  command->callback([options, &exit_code] {
    const bool terminal = ::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1;
    const Status done = options->once || !terminal ? show_once(*options) : show(*options);
    if (!done) exit_code = report(done.error());
  });
}

}  // namespace antdt::cli
