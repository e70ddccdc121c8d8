// The checkpoints that a server was ordered to make, or heard of from other homes, with their
// outcomes. Each is made once, and its outcome is told as often as it is asked for.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/result.h"
#include "core/wire/servers/ps_messages.h"
#include "trainer/ps/replica/node_image.h"

namespace antdt::ps {

class CutOrders {
 public:
  static constexpr std::size_t kKept = 4;

  // The outcome; null: there is none yet.
  [[nodiscard]] const wire::PsSaved* outcome(std::uint64_t number) const;
  // Whether a later checkpoint is known and this one is not.
  [[nodiscard]] bool overtaken(std::uint64_t number) const;
  // Old entries are dropped to make room; a caller that asks for a dropped one orders a new
  // checkpoint.
  void know(std::uint64_t number);
  // This home sent its marker for it, when its workers had reached these places.
  void marked(std::uint64_t number, std::vector<wire::PsPlaces> places);
  // The server begins to save the state after `version` updates. Returns the earlier checkpoints
  // that can no longer be made, because markers of this later one overtook theirs.
  std::vector<wire::PsSaved> begun(std::uint64_t number, std::uint64_t version);
  void paused(std::uint64_t number, std::uint64_t pause_us);
  const wire::PsSaved& written(std::uint64_t number, std::vector<wire::CheckpointFile> files);
  const wire::PsSaved& failed(std::uint64_t number, std::string error);

  // The checkpoints that were begun and have no outcome yet.
  [[nodiscard]] std::vector<std::uint64_t> writing() const;

  [[nodiscard]] CutOrdersImage image() const;
  // Takes over a state; this object must know of no checkpoint yet.
  [[nodiscard]] Status restore(const CutOrdersImage& image);

  // The outcome of a checkpoint that a later one overtook.
  static constexpr const char* kOvertaken = "a later checkpoint was ordered before it";

 private:
  //   kKnown ──begun()──> kSaving ──written(), failed()──> kConcluded
  //     └──failed(), or a later one is begun()──> kGivenUp ──begun()──^
  // In the last two it has an outcome, and keeps it.
  enum class State : std::uint8_t { kKnown, kSaving, kConcluded, kGivenUp };
  struct Cut {
    wire::PsSaved saved;  // as far as it is known
    State state = State::kKnown;
    [[nodiscard]] bool has_outcome() const {
      return state == State::kConcluded || state == State::kGivenUp;
    }
    void begin();
    void conclude();
  };
  Cut& at(std::uint64_t number);

  std::map<std::uint64_t, Cut> cuts_;  // at most kKept
};

}  // namespace antdt::ps
