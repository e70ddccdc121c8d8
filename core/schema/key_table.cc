// The keys of job.toml. Their documentation in job.toml(5) is checked against
// this table by tests/launcher/man_page_test.cc, keys and defaults both.
#include "core/schema/key_table.h"

namespace antdt::schema {

namespace {

std::vector<Key> all() {
  std::vector<Key> keys;
  for (const auto* part : {&key_table::job(), &key_table::training(), &key_table::operation()}) {
    keys.insert(keys.end(), part->begin(), part->end());
  }
  return keys;
}

}  // namespace

std::span<const Key> keys() {
  static const std::vector<Key> table = all();
  return table;
}

}  // namespace antdt::schema
