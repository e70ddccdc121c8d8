// The model of a simulated worker: how often each record was trained. Every real model is the sum
// of the updates applied to it, so this one shows which updates a real one would contain.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/ids.h"
#include "core/permutation.h"
#include "core/wire/shard_messages.h"

namespace antdt::sim {

using Record = std::uint64_t;

inline constexpr const char* kRunDirectory = "run";

// What a member added to its replica in a step of its own, where replicas differ.
struct Update {
  std::uint32_t epoch = 0;
  std::vector<Record> records;
  std::uint64_t skipped = 0;  // of them, by the program
};

// An update of a domain in a replica, where domains send one another parts of updates (Gaia). It
// has a few pieces, as a real one has elements.
inline constexpr std::size_t kPieces = 4;
using Pieces = std::array<std::uint8_t, kPieces>;
struct HeldUpdate {
  std::shared_ptr<const Update> update;
  std::string domain;
  Pieces there{};  // how often each piece is in the replica
  Pieces sent{};   // of the own domain: which pieces the others have been sent
};

struct Model {
  std::vector<std::uint8_t> tally;  // by record: in how many steps it was, trained or skipped
  // How many records the workers' program skipped in those steps, by epoch.
  std::vector<std::uint64_t> skipped;
  // The updates that were added since replicas were equal, by number; they are counted above. Each
  // is in a replica once, by whatever way it came.
  std::map<std::uint64_t, std::shared_ptr<const Update>> updates = {};
  // Of domains' updates, by number: those that are not in all replicas entirely, as far as this one
  // knows. Of these, the ones that are here entirely are counted above.
  std::map<std::uint64_t, HeldUpdate> held = {};
  // On servers: how many exchanges of workers' replicas moved the centre.
  std::uint64_t exchanges = 0;

  // Returns false if the update is in it already.
  bool add(std::uint64_t number, const std::shared_ptr<const Update>& update) {
    if (!updates.emplace(number, update).second) return false;
    count(*update, 1);
    return true;
  }
  // Counts an update so many times more, or less.
  void count(const Update& update, int times) {
    for (const Record r : update.records) tally.at(r) = static_cast<std::uint8_t>(tally[r] + times);
    skip(update.epoch, update.skipped * static_cast<std::uint64_t>(times));
  }
  void skip(std::uint32_t epoch, std::uint64_t records) {
    if (records == 0) return;
    if (skipped.size() <= epoch) skipped.resize(epoch + 1);
    skipped[epoch] += records;
  }
  [[nodiscard]] std::uint64_t skipped_in(std::uint32_t epoch) const {
    return epoch < skipped.size() ? skipped[epoch] : 0;
  }

  [[nodiscard]] std::uint64_t hash() const {
    std::uint64_t h = 1;
    for (std::size_t i = 0; i < tally.size(); ++i) {
      if (tally[i] != 0) h = combine_seed(h ^ i, tally[i]);
    }
    for (const std::uint64_t records : skipped) h = combine_seed(h, records);
    return h;
  }
};

// The content of a checkpoint.
struct Trained {
  Model model;
  Step step;
};

// Appends the records of a piece in the order in which they are trained.
inline void append_records(const wire::Piece& piece, std::vector<Record>& out) {
  const Permutation order(piece.shard_records, piece.order_seed);
  for (std::uint64_t p = piece.from; p < piece.to; ++p) {
    out.push_back(piece.shard_first + (piece.shuffled ? order(p) : p));
  }
}

}  // namespace antdt::sim
