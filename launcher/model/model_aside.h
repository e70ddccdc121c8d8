// A directory that is made beside its place and gets its name when it is whole.
#pragma once

#include <csignal>
#include <cstdint>
#include <string>

#include "core/result.h"

namespace antdt::cli {

class AsideDirectory {
 public:
  // Whether a directory can come to `place`: there is nothing, or an empty
  // directory. kUsage for anything else.
  [[nodiscard]] static Status check(const std::string& place);
  // Checks that; what is missing above `place` is made.
  [[nodiscard]] static Result<AsideDirectory> make_for(const std::string& place);
  AsideDirectory(AsideDirectory&& other) noexcept;
  AsideDirectory& operator=(AsideDirectory&&) = delete;
  ~AsideDirectory();  // unless in place, nothing stays

  [[nodiscard]] const std::string& place() const { return place_; }     // absolute
  [[nodiscard]] std::string path() const { return outer_ + "/model"; }  // until then
  // kIo, with the way out, where there is no room for so many bytes.
  [[nodiscard]] Status check_room(std::uint64_t bytes) const;
  [[nodiscard]] Status put_in_place();

 private:
  AsideDirectory(std::string place, std::string outer)
      : place_(std::move(place)), outer_(std::move(outer)) {}
  std::string place_;
  std::string outer_;  // mode 0700
};

// SIGINT, SIGTERM and SIGHUP wait while this is there, so that who makes much can
// take it away first; after that they do what they always do.
class SignalsWait {
 public:
  SignalsWait();
  ~SignalsWait();
  SignalsWait(const SignalsWait&) = delete;
  SignalsWait& operator=(const SignalsWait&) = delete;
  [[nodiscard]] bool any() const;  // one has come

 private:
  sigset_t waiting_{};
  sigset_t before_{};
};

}  // namespace antdt::cli
