#include "launcher/commands/top/terminal.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <utility>

namespace antdt::cli {
namespace {

// The other screen, without a cursor; the way back.
constexpr const char* kBegin = "\x1b[?1049h\x1b[?25l";
constexpr const char* kEnd = "\x1b[?25h\x1b[?1049l";

OwnedFd blocked_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGWINCH}) sigaddset(&signals, signal);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return OwnedFd(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
}

}  // namespace

Result<Terminal> Terminal::open() {
  termios before{};
  if (::tcgetattr(STDIN_FILENO, &before) != 0) {
    return fail_errno(ErrorKind::kIo, errno, "standard input is no terminal");
  }
  OwnedFd signals = blocked_signals();
  if (!signals.is_open()) return fail_errno(ErrorKind::kIo, errno, "signalfd");
  termios single = before;
  single.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO | ISIG | IEXTEN);
  single.c_cc[VMIN] = 0;
  single.c_cc[VTIME] = 0;
  if (::tcsetattr(STDIN_FILENO, TCSAFLUSH, &single) != 0) {
    return fail_errno(ErrorKind::kIo, errno, "the terminal cannot give single keys");
  }
  std::fputs(kBegin, stdout);
  std::fflush(stdout);
  return Terminal(before, std::move(signals));
}

Terminal::Terminal(Terminal&& other) noexcept
    : before_(other.before_),
      signals_(std::move(other.signals_)),
      open_(std::exchange(other.open_, false)) {}

Terminal::~Terminal() {
  if (!open_) return;
  std::fputs(kEnd, stdout);
  std::fflush(stdout);
  ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &before_);
}

launcher::top::Size Terminal::size() const {
  winsize window{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) != 0) return {};
  if (window.ws_row == 0 || window.ws_col == 0) return {};
  return {window.ws_row, window.ws_col};
}

// Each line is written over the old one, so that nothing flickers.
void Terminal::draw(const std::vector<std::string>& lines) {
  std::string text = "\x1b[H";
  for (std::size_t i = 0; i < lines.size(); ++i) {
    text += (i == 0 ? "" : "\r\n") + lines[i] + "\x1b[K";
  }
  text += "\x1b[J";
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

Terminal::Event Terminal::wait(Duration patience, int news) {
  Event event;
  std::array<pollfd, 3> fds = {
      {{STDIN_FILENO, POLLIN, 0}, {signals_.get(), POLLIN, 0}, {news, POLLIN, 0}}};
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(patience).count();
  if (::poll(fds.data(), fds.size(), static_cast<int>(ms)) <= 0) return event;
  signalfd_siginfo info{};
  while (::read(signals_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    if (info.ssi_signo != SIGWINCH) event.is_over = true;
  }
  if (fds[0].revents != 0) {
    std::array<char, 256> bytes;
    const ssize_t got = ::read(STDIN_FILENO, bytes.data(), bytes.size());
    if (got > 0) event.bytes.assign(bytes.data(), static_cast<std::size_t>(got));
    if (got <= 0 && (fds[0].revents & POLLHUP) != 0) event.is_over = true;
  }
  return event;
}

}  // namespace antdt::cli
