#include "core/metrics/exposition.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>

namespace antdt::metrics {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// How many bytes the UTF-8 character at the beginning of `text` has; 0 if it is none.
std::size_t character(std::string_view text) {
  const auto byte = [text](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint8_t first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t size = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < size) return 0;
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  // Not the shortest form, a surrogate, or beyond the last character.
  const std::uint8_t second = byte(1);
  const bool wrong = (first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F) ||
                     (first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F);
  return wrong ? 0 : size;
}

// Appends `text` with what the format escapes: in help texts, quotes stay.
void escape(std::string_view text, bool quotes, std::string& out) {
  while (!text.empty()) {
    const std::size_t size = character(text);
    const std::string_view one = size == 0 ? kReplacement : text.substr(0, size);
    if (one == "\n") {
      out += "\\n";
    } else if (one == "\\" || (quotes && one == "\"")) {
      out += '\\';
      out += one;
    } else {
      out += one;
    }
    text.remove_prefix(size == 0 ? 1 : size);
  }
}

// The first bytes of `text`, which end with a whole character.
std::string_view shortened(std::string_view text) {
  if (text.size() <= kMostOfALabel) return text;
  std::size_t size = kMostOfALabel;
  while (size > 0 && (static_cast<std::uint8_t>(text[size]) & 0xC0) == 0x80) --size;
  return text.substr(0, size);
}

std::string_view name_of(Type type) {
  switch (type) {
    case Type::kGauge:
      return "gauge";
    case Type::kCounter:
      return "counter";
    case Type::kHistogram:
      return "histogram";
  }
  return "untyped";
}

std::string number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return fmt::format("{}", value);
}

class Writer {
 public:
  explicit Writer(const Families& families) : families_(families) {}

  std::string write() && {
    for (const Family& family : families_.all()) {
      if (family.samples.empty() && family.histograms.empty()) continue;
      head(family);
      for (const Family::Sample& s : family.samples) line(family.name, "", s.labels, s.value);
      for (const Histogram& h : family.histograms) histogram(family.name, h);
    }
    return std::move(out_);
  }

 private:
  void head(const Family& family) {
    out_ += fmt::format("# HELP {} ", family.name);
    escape(family.help, /*quotes=*/false, out_);
    out_ += fmt::format("\n# TYPE {} {}\n", family.name, name_of(family.type));
  }

  void histogram(const std::string& name, const Histogram& h) {
    std::uint64_t below = 0;
    for (std::size_t i = 0; i < h.counts().size(); ++i) {
      below += h.counts()[i];
      const bool last = i == h.bounds().size();
      line(name, "_bucket", {{"le", last ? "+Inf" : number(h.bounds()[i])}},
           static_cast<double>(below));
    }
    line(name, "_sum", {}, h.sum());
    line(name, "_count", {}, static_cast<double>(below));
  }

  void line(const std::string& name, std::string_view suffix, const Labels& labels, double value) {
    out_ += name;
    out_ += suffix;
    char before = '{';
    for (const Labels* list : {&families_.common(), &labels}) {
      for (const auto& [label, text] : *list) {
        out_ += before;
        before = ',';
        out_ += label;
        out_ += "=\"";
        escape(shortened(text), /*quotes=*/true, out_);
        out_ += '"';
      }
    }
    if (before == ',') out_ += '}';
    out_ += ' ';
    out_ += number(value);
    out_ += '\n';
  }

  const Families& families_;
  std::string out_;
};

}  // namespace

std::string to_text(const Families& families) { return Writer(families).write(); }

}  // namespace antdt::metrics
