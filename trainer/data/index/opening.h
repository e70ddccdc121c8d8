// What a process keeps while it opens its data, which may take hours: whom it tells how far it is,
// and which index files it has checked, since it opens the same one several times.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "trainer/client/client.h"
#include "trainer/data/index/mapped_file.h"

namespace antdt::data {

// Phrases of ctl/processes/io_watch.h, which say why a worker has not joined yet.
inline constexpr const char* kOpensData = "opening the data";  // by means of a program's own
inline constexpr const char* kIndexesData = "indexing the data";
inline constexpr const char* kChecksIndex = "checking the index of the data";
inline constexpr const char* kWaitsForIndex = "waiting for another process to index the data";

class Opening {
 public:
  // So many bytes are read between two calls of `tell`, at most.
  static constexpr std::size_t kTellEvery = 1 << 20;
  using Tell = std::function<void(client::Io)>;

  explicit Opening(Tell tell = {}) : tell_(std::move(tell)) {}
  // `total`: 0 if it is not known.
  void tell(const char* what, const std::string& path, std::uint64_t done, std::uint64_t total) {
    const client::Io io{what, path, done, total};
    for (const Tell& listener : listeners_) listener(io);
    if (tell_) tell_(io);
  }
  void tell_that_it_is_open() {
    if (tell_) tell_({});
  }
  // As long as the returned value lives, `listener` is told, too, before the others are. The last
  // of them ends first.
  class Listening;
  [[nodiscard]] Listening listen(Tell listener);
  // XXH3 of bytes of the file. Tells how far it is.
  [[nodiscard]] std::uint64_t hash(const char* what, const MappedFile& file,
                                   std::string_view bytes);

  [[nodiscard]] bool has_checked(const MappedFile& index) const {
    return checked_.contains(key_of(index));
  }
  void note_checked(const MappedFile& index) { checked_.insert(key_of(index)); }

 private:
  using Key = std::tuple<std::string, std::size_t, std::int64_t, std::int64_t>;
  static Key key_of(const MappedFile& file) {
    return {file.path(), file.bytes().size(), file.mtime_ns(), file.ctime_ns()};
  }

  Tell tell_;
  std::vector<Tell> listeners_;
  std::set<Key> checked_;
};

class Opening::Listening {
 public:
  ~Listening() { opening_.listeners_.pop_back(); }
  Listening(const Listening&) = delete;
  Listening& operator=(const Listening&) = delete;

 private:
  friend class Opening;
  Listening(Opening& opening, Tell listener) : opening_(opening) {
    opening_.listeners_.push_back(std::move(listener));
  }
  Opening& opening_;
};

inline Opening::Listening Opening::listen(Tell listener) {
  return Listening(*this, std::move(listener));
}

}  // namespace antdt::data
