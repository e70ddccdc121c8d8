// The keys of a terminal. Pure.
#pragma once

#include <string>
#include <vector>

namespace antdt::launcher::top {

enum class Key { kUp, kDown, kPageUp, kPageDown, kEnter, kEscape, kInterrupt, kLetter };

struct Pressed {
  Key key = Key::kLetter;
  char letter = 0;  // of kLetter, in lower case
};

// Takes the keys out of what was read at once. Other characters and unknown sequences are dropped.
[[nodiscard]] std::vector<Pressed> keys_of(const std::string& bytes);

}  // namespace antdt::launcher::top
