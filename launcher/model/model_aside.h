// A directory that is made beside its final place and renamed when it is complete.
#pragma once

#include <csignal>
#include <cstdint>
#include <string>

#include "core/result.h"

namespace antdt::cli {

class AsideDirectory {
 public:
  // Whether a directory can be put at `place`: nothing is there, or an empty directory. Otherwise
  // kUsage.
  [[nodiscard]] static Status check(const std::string& place);
  // Checks that, and makes the missing parents of `place`.
  [[nodiscard]] static Result<AsideDirectory> make_for(const std::string& place);
  AsideDirectory(AsideDirectory&& other) noexcept;
  AsideDirectory& operator=(AsideDirectory&&) = delete;
  ~AsideDirectory();  // removes the directory, unless it is in place

  [[nodiscard]] const std::string& place() const { return place_; }     // absolute
  [[nodiscard]] std::string path() const { return outer_ + "/model"; }  // path until then
  // kIo, with the way out, if there is no room for so many bytes.
  [[nodiscard]] Status check_room(std::uint64_t bytes) const;
  [[nodiscard]] Status put_in_place();

 private:
  AsideDirectory(std::string place, std::string outer)
      : place_(std::move(place)), outer_(std::move(outer)) {}
  std::string place_;
  std::string outer_;  // with mode 0700
};

// While an object of this class exists, SIGINT, SIGTERM and SIGHUP wait, so that the process can
// first remove what it is making; afterwards they have their usual effect.
class SignalsWait {
 public:
  SignalsWait();
  ~SignalsWait();
  SignalsWait(const SignalsWait&) = delete;
  SignalsWait& operator=(const SignalsWait&) = delete;
  [[nodiscard]] bool any() const;  // whether one has arrived

 private:
  sigset_t waiting_{};
  sigset_t before_{};
};

}  // namespace antdt::cli
