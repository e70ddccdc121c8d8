// What rows were before an update, so that the update can be taken back.
//
//   remember() ──> the update ──> take_back()   the rows are what they were, to the last bit
//                             └─> forget()      the update stays
//
// The values of a row and the state of its optimizer. A row that did not exist is remembered as a
// row that was only read: it begins with what the seed, the table and the key say (store.h).
// Memory: a copy of the rows that are remembered.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "trainer/ps/rows/store.h"

namespace antdt::ps {

class RowsBefore {
 public:
  // The rows as they are now. A row may be remembered once only before the others are forgotten.
  void remember(Store& store, std::uint32_t table, std::span<const std::uint64_t> keys);
  void take_back(Store& store);
  void forget() { tables_.clear(); }

  [[nodiscard]] bool empty() const { return tables_.empty(); }

 private:
  struct Table {
    std::uint32_t table = 0;
    std::vector<std::uint64_t> keys;
    std::vector<float> floats;  // of each row its values, then its state
  };
  std::vector<Table> tables_;
};

}  // namespace antdt::ps
