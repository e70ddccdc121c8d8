// The checkpoints that a member reads and writes, on a disk that takes its time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/clock.h"
#include "sim/model.h"
#include "trainer/worker/member/effects.h"
#include "trainer/worker/member/inputs.h"

namespace antdt::sim {

class Worker;

class MemberFiles {
 public:
  using Answer = std::optional<worker::Input>;
  MemberFiles(Worker& worker, Model& model) : worker_(worker), model_(model) {}

  [[nodiscard]] Answer perform(const worker::ReadState& effect);
  [[nodiscard]] Answer perform(worker::Save& effect);
  [[nodiscard]] Answer perform(const worker::GiveUpSaving& effect);
  // A checkpoint that is written and not yet reported.
  [[nodiscard]] std::optional<wire::CheckpointWritten> take_saved() {
    return std::exchange(saved_, std::nullopt);
  }
  // The world's time since when it has read or written without a pause.
  [[nodiscard]] const std::optional<MonoTime>& moves_since() const { return moves_since_; }

 private:
  [[nodiscard]] Answer read_on(const std::string& directory, std::uint64_t parts);
  [[nodiscard]] Answer write_beside_rows(bool is_last);
  void write_on(std::uint64_t number, std::uint64_t parts);
  void written(std::string error);
  void say_io(const char* what, const std::string& path, std::uint64_t parts);
  void say_no_io();

  Worker& worker_;
  Model& model_;
  // A checkpoint that is written while steps go on: the model as it was at its step.
  struct Writing {
    std::uint64_t number = 0;
    worker::Save save;
    Trained state;
  };
  std::optional<Writing> writing_;
  std::uint64_t writings_ = 0;
  std::optional<wire::CheckpointWritten> saved_;
  std::optional<MonoTime> moves_since_;
  MonoTime moved_{};
};

}  // namespace antdt::sim
