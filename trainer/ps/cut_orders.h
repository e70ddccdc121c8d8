// The checkpoints that a server was told to make, or has heard of, and what came of
// them: each is made once and answered as often as it is asked for.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/result.h"
#include "core/wire/ps_messages.h"
#include "trainer/ps/node_image.h"

namespace antdt::ps {

class CutOrders {
 public:
  static constexpr std::size_t kKept = 4;

  // What came of it; null: nothing yet.
  [[nodiscard]] const wire::PsSaved* outcome(std::uint64_t number) const;
  // A later one was heard of, and this one never was.
  [[nodiscard]] bool overtaken(std::uint64_t number) const;
  // Old ones make room: whoever still asks for one of them orders a new one.
  void know(std::uint64_t number);
  // This home put its marker for it when its workers were there.
  void marked(std::uint64_t number, std::vector<wire::PsPlaces> places);
  // Its state is the one after `version` updates. What came of those before it that had
  // not got so far: their markers were passed by those of a later one.
  std::vector<wire::PsSaved> begun(std::uint64_t number, std::uint64_t version);
  void paused(std::uint64_t number, std::uint64_t pause_us);
  const wire::PsSaved& written(std::uint64_t number, std::vector<wire::CheckpointFile> files);
  const wire::PsSaved& failed(std::uint64_t number, std::string error);

  // Begun, and nothing has come of it yet.
  [[nodiscard]] std::vector<std::uint64_t> writing() const;

  [[nodiscard]] CutOrdersImage image() const;
  // Into one that knows of none.
  [[nodiscard]] Status restore(const CutOrdersImage& image);

  // Why one that is overtaken cannot be made.
  static constexpr const char* kOvertaken = "a later checkpoint was ordered before it";

 private:
  struct Cut {
    wire::PsSaved saved;  // as far as it is known
    bool begun = false;
    bool done = false;
  };
  Cut& at(std::uint64_t number);

  std::map<std::uint64_t, Cut> cuts_;  // at most kKept
};

}  // namespace antdt::ps
