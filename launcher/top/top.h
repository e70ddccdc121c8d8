// `antdt top`: all jobs of a user, redrawn in place. A machine without I/O:
//
//   table ──Enter──> worker (one worker in full)      table, worker ──e──> question ──y──> Evict
//     ^────Escape, Enter────┘                                ^──any other key──┘
//
// The selected worker stays selected while rows change their order.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "launcher/top/keys.h"
#include "launcher/top/rows.h"

namespace antdt::launcher::top {

// The worker to evict, as it was when the user was asked.
struct Question {
  std::string run_dir;
  std::string job;
  std::string worker;
  std::string host;
};

struct Top {
  Seen seen;
  bool heard = false;  // anything at all
  Sort sort = Sort::kSlow;
  std::optional<std::pair<std::string, std::string>> selected;  // run directory and worker
  bool open = false;
  std::optional<Question> question;
  std::string told;       // the answer to the last order
  std::size_t page = 10;  // how many rows the screen showed last

  [[nodiscard]] std::vector<Row> rows() const { return rows_of(seen.jobs, sort); }
  // The place of the selected worker among the rows; 0 if it is not there any more.
  [[nodiscard]] std::size_t place(const std::vector<Row>& rows) const;
};

struct Heard {
  Seen seen;
};
struct Told {
  std::string text;
};
using Input = std::variant<Pressed, Heard, Told>;

struct Leave {};
struct Evict {
  std::string run_dir;
  std::string worker;
};
using Effect = std::variant<Leave, Evict>;

std::optional<Effect> step(Top& top, const Input& input);

}  // namespace antdt::launcher::top
