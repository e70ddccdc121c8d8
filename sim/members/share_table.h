// The desk of a group of members that share their steps (trainer/worker/sharing), in the process of
// the group's first member, and the messages between it and the members.
//
// A message is late, sometimes lost or repeated, and does not arrive where the hosts cannot reach
// each other. If the desk's member leaves, nobody is answered any more.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "sim/model.h"
#include "sim/world.h"
#include "trainer/worker/sharing/share_desk.h"

namespace antdt::sim {

class ShareTable {
 public:
  // Whether messages pass now between this member of the group, by its index, and the desk.
  using Reaches = std::function<bool(std::uint32_t)>;
  // The answer, and the records of its run.
  using Heard = std::function<void(const worker::sharing::Answer&, const std::vector<Record>&)>;

  ShareTable(World& world, const worker::sharing::ShareGroup& group,
             const worker::sharing::ShareRules& rules, Reaches reaches)
      : world_(world),
        parts_(group.size()),
        desk_(group.size(), rules),
        reaches_(std::move(reaches)) {}

  // `part`: the records of the sender's part of the step. `heard` is called for each answer to this
  // very message.
  void send(const worker::sharing::Input& input, const std::vector<Record>& part, Heard heard);
  // A run of another's part begins one record too early: its owner computes that, too.
  void sabotage() { overlaps_ = true; }

 private:
  void carry(std::uint32_t member, std::function<void()> what);
  void arrive(const worker::sharing::Input& input, const std::vector<Record>& part);
  void answer(worker::sharing::Answer answer);

  struct Part {
    Step step;
    std::vector<Record> records;
    Heard heard;  // of the member's newest ask
  };
  World& world_;
  Life life_;
  std::vector<Part> parts_;  // of the members
  worker::sharing::ShareDesk desk_;
  Reaches reaches_;
  bool overlaps_ = false;
};

}  // namespace antdt::sim
