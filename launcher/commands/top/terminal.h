// A terminal that is drawn as a whole and gives single keys. It is as it was when this object ends.
#pragma once

#include <termios.h>

#include <string>
#include <vector>

#include "core/clock.h"
#include "core/os/owned_fd.h"
#include "core/result.h"
#include "launcher/top/screen.h"

namespace antdt::cli {

class Terminal {
 public:
  // Standard input and output. Blocks SIGINT, SIGTERM, SIGHUP and SIGWINCH, which wait() reports;
  // to be called before threads are started.
  [[nodiscard]] static Result<Terminal> open();
  Terminal(Terminal&& other) noexcept;
  Terminal& operator=(Terminal&&) = delete;
  ~Terminal();

  [[nodiscard]] launcher::top::Size size() const;
  void draw(const std::vector<std::string>& lines);

  struct Event {
    std::string bytes;     // that were typed
    bool is_over = false;  // a signal or the terminal's end asks to leave
  };
  // Returns at the first event, or after `patience`, or when `news` is readable.
  [[nodiscard]] Event wait(Duration patience, int news);

 private:
  Terminal(const termios& before, OwnedFd signals)
      : before_(before), signals_(std::move(signals)) {}
  termios before_;
  OwnedFd signals_;
  bool open_ = true;
};

}  // namespace antdt::cli
