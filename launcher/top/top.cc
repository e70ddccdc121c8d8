#include "launcher/top/top.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/overloaded.h"

namespace antdt::launcher::top {
namespace {

using Rows = std::vector<Row>;

void select(Top& top, const Rows& rows, std::size_t place) {
  if (rows.empty()) {
    top.selected.reset();
    top.open = false;
    return;
  }
  const Row& row = rows[std::min(place, rows.size() - 1)];
  top.selected = {row.run_dir, row.worker.id};
}

std::optional<Effect> answer(Top& top, const Pressed& pressed) {
  const Question question = *std::exchange(top.question, std::nullopt);
  if (pressed.key != Key::kLetter || pressed.letter != 'y') {
    top.told = fmt::format("{} stays", question.worker);
    return std::nullopt;
  }
  top.told = fmt::format("{} of {} is asked to leave", question.worker, question.job);
  return Evict{question.run_dir, question.worker};
}

void ask(Top& top, const Rows& rows) {
  if (rows.empty()) return;
  const Row& row = rows[top.place(rows)];
  top.question = Question{row.run_dir, row.job, row.worker.id, row.worker.host};
}

std::optional<Effect> on_letter(Top& top, const Rows& rows, char letter) {
  const std::size_t place = top.place(rows);
  switch (letter) {
    case 'q':
      return Leave{};
    case 's':
      top.sort = Sort::kSlow;
      break;
    case 'c':
      top.sort = Sort::kCpu;
      break;
    case 'l':
      top.sort = Sort::kLost;
      break;
    case 'n':
      top.sort = Sort::kName;
      break;
    case 'j':
      select(top, rows, place + 1);
      break;
    case 'k':
      select(top, rows, place - std::min<std::size_t>(place, 1));
      break;
    case 'e':
      ask(top, rows);
      break;
    default:
      break;
  }
  return std::nullopt;
}

std::optional<Effect> on(Top& top, const Pressed& pressed) {
  if (pressed.key == Key::kInterrupt) return Leave{};
  if (top.question) return answer(top, pressed);
  top.told.clear();
  const Rows rows = top.rows();
  const std::size_t place = top.place(rows);
  switch (pressed.key) {
    case Key::kUp:
      select(top, rows, place - std::min<std::size_t>(place, 1));
      break;
    case Key::kDown:
      select(top, rows, place + 1);
      break;
    case Key::kPageUp:
      select(top, rows, place - std::min(place, top.page));
      break;
    case Key::kPageDown:
      select(top, rows, place + top.page);
      break;
    case Key::kEnter:
      select(top, rows, place);
      top.open = !top.open && !rows.empty();
      break;
    case Key::kEscape:
      top.open = false;
      break;
    case Key::kInterrupt:
      break;
    case Key::kLetter:
      return on_letter(top, rows, pressed.letter);
  }
  return std::nullopt;
}

}  // namespace

std::size_t Top::place(const std::vector<Row>& rows) const {
  if (!selected) return 0;
  const auto found = std::ranges::find_if(rows, [this](const Row& row) {
    return row.run_dir == selected->first && row.worker.id == selected->second;
  });
  return found == rows.end() ? 0 : static_cast<std::size_t>(found - rows.begin());
}

std::optional<Effect> step(Top& top, const Input& input) {
  return std::visit(Overloaded{[&](const Pressed& pressed) { return on(top, pressed); },
                               [&](const Heard& heard) -> std::optional<Effect> {
                                 top.seen = heard.seen;
                                 top.heard = true;
                                 const auto rows = top.rows();
                                 select(top, rows, top.place(rows));
                                 return std::nullopt;
                               },
                               [&](const Told& told) -> std::optional<Effect> {
                                 top.told = told.text;
                                 return std::nullopt;
                               }},
                    input);
}

}  // namespace antdt::launcher::top
