// Lines of data files. The first byte chooses the format.
#include <algorithm>

#include "tests/fuzz/support/fuzz.h"
#include "trainer/data/formats/criteo.h"
#include "trainer/data/formats/csv.h"
#include "trainer/data/formats/features.h"
#include "trainer/data/formats/labels.h"

namespace {

using namespace antdt::data;

// Whether `part` lies in `whole`: labels must not outlive the line.
bool lies_in(std::string_view part, std::string_view whole) {
  return part.empty() ||
         (part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size());
}

void read_rows(const RowFormat& format, std::string_view text) {
  Labels labels(format.accepts_text_labels());
  const IdMap ids = IdMap::hashing(format.fields(), 1000);
  Row row;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    (void)format.check_header(line);
    row.problem.clear();
    if (!format.parse(line, row)) {
      ANTDT_CHECK(!row.problem.empty(), "'{}' is refused without a word", line);
      continue;
    }
    ANTDT_CHECK(row.numbers.size() == format.numbers() && row.keys.size() == format.categories(),
                "{} numbers and {} keys", row.numbers.size(), row.keys.size());
    for (const double number : row.numbers) {
      (void)dense_value(number);
      (void)ids.id(0, number_key(number));
    }
    ANTDT_CHECK(lies_in(row.label, line), "the label lies outside of '{}'", line);
    if (labels.learn(row.label).empty()) (void)labels.value(row.label);
  }
}

}  // namespace

ANTDT_FUZZ_TARGET(rows)(const std::uint8_t* data, std::size_t size) {
  antdt::fuzz::Input input(data, size);
  const std::uint8_t which = input.byte();
  if (which == 'c') {
    read_rows(CriteoFormat(), input.rest());
  } else {
    const char separator = which == 't' ? '\t' : which == ' ' ? ' ' : ',';
    const CsvFormat format({{"n", ColumnKind::kNumeric},
                            {"label", ColumnKind::kLabel},
                            {"c", ColumnKind::kCategory},
                            {"rest", ColumnKind::kIgnore}},
                           separator, true);
    read_rows(format, input.rest());
  }
  return 0;
}
