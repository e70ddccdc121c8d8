#include "report/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace antdt::page {
namespace {

// Size of the drawing, in its own units.
constexpr double kWidth = 900, kHeight = 250;
constexpr double kLeft = 64, kRight = 12, kTop = 18, kBottom = 30;
constexpr double kNumber = 16;        // width of the number of a mark
constexpr std::size_t kPoints = 600;  // most points of a line
constexpr std::size_t kColours = 10;  // how many colours a page has
constexpr std::size_t kNamed = 40;    // how many lines are named below a plot

// Maps a range of values to a range of the drawing.
struct Axis {
  double most = 1;  // begins at 0
  double step = 1;  // distance of its ticks
  double from = 0, to = 1;
  [[nodiscard]] double at(double value) const { return from + (to - from) * value / most; }
};

Axis axis(double most, double ticks, double from, double to) {
  if (!(most > 0)) most = 1;
  const double step = round_step(most / ticks);
  return {std::ceil(most / step - 1e-9) * step, step, from, to};
}

std::pair<double, double> most_of(const Plot& plot) {
  double x = 0, y = 0;
  for (const PlotLine& line : plot.lines) {
    for (const auto& [px, py] : line.points) {
      x = std::max(x, px);
      if (std::isfinite(py)) y = std::max(y, py);
    }
  }
  for (const PlotMark& mark : plot.marks) x = std::max(x, mark.x);
  return {x, y};
}

std::string grid(const Axis& x, const Axis& y, const Plot& plot) {
  std::string out;
  for (double v = 0; v <= y.most + y.step / 2; v += y.step) {
    out += fmt::format(
        "<line class=\"grid\" x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>"
        "<text class=\"end\" x=\"{:.1f}\" y=\"{:.1f}\">{:g}</text>\n",
        x.from, x.to, y.at(v), y.at(v), x.from - 6, y.at(v) + 4, v);
  }
  for (double v = 0; v <= x.most + x.step / 2; v += x.step) {
    out += fmt::format("<text class=\"middle\" x=\"{:.1f}\" y=\"{:.1f}\">{:g}</text>\n", x.at(v),
                       y.from + 15, v);
  }
  return out + fmt::format(
                   "<text x=\"4\" y=\"11\">{}</text>"
                   "<text class=\"end\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n",
                   escaped(plot.y_unit), x.to, kHeight - 2, escaped(plot.x_unit));
}

// Reduces a line to as many points as a screen shows, by means of neighbours. Gaps are kept.
std::vector<std::pair<double, double>> thinned(const PlotLine& line) {
  const std::size_t many = (line.points.size() + kPoints - 1) / kPoints;
  if (many <= 1) return line.points;
  std::vector<std::pair<double, double>> out;
  for (std::size_t i = 0; i < line.points.size(); i += many) {
    const std::size_t end = std::min(i + many, line.points.size());
    double x = 0, y = 0;
    for (std::size_t k = i; k < end; ++k) {
      x += line.points[k].first;
      y += line.points[k].second;
    }
    const auto count = static_cast<double>(end - i);
    out.emplace_back(x / count, y / count);
  }
  return out;
}

std::string path(const PlotLine& line, std::size_t colour, const Axis& x, const Axis& y) {
  std::string d;
  bool drawn = false;
  for (const auto& [px, py] : thinned(line)) {
    if (!std::isfinite(py)) {
      drawn = false;
      continue;
    }
    d += fmt::format("{}{:.1f} {:.1f}", drawn ? 'L' : 'M', x.at(px), y.at(py));
    drawn = true;
  }
  return fmt::format("<path class=\"c{}\" d=\"{}\"><title>{}</title></path>\n", colour % kColours,
                     d, escaped(line.name));
}

// The number is not shown if it would cover another number.
std::string mark_line(const PlotMark& mark, bool numbered, const Axis& x, const Axis& y) {
  return fmt::format(
      "<g class=\"mark\"><line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:.1f}\" y2=\"{2:.1f}\"/>"
      "<text class=\"middle\" x=\"{0:.1f}\" y=\"{3:.1f}\">{4}</text><title>{5}</title></g>\n",
      x.at(mark.x), y.from, y.to, y.to - 4, numbered ? escaped(mark.label) : "",
      escaped(mark.text));
}

std::string names(const Plot& plot) {
  std::string out = "<p class=\"names\">";
  for (std::size_t i = 0; i < plot.lines.size() && i < kNamed; ++i) {
    out += fmt::format("<span><i class=\"c{}\"></i>{}</span> ", i % kColours,
                       escaped(plot.lines[i].name));
  }
  if (plot.lines.size() > kNamed) out += fmt::format("and {} more", plot.lines.size() - kNamed);
  return out + "</p>\n";
}

}  // namespace

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        // SVG and HTML allow no other control characters.
        out += static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t' ? '?' : c;
    }
  }
  return out;
}

double round_step(double least) {
  const double ten = std::pow(10.0, std::floor(std::log10(least)));
  for (const double times : {1.0, 2.0, 5.0}) {
    if (times * ten >= least * (1 - 1e-9)) return times * ten;
  }
  return 10 * ten;
}

std::string draw(const Plot& plot) {
  const auto [x_most, y_most] = most_of(plot);
  const Axis x = axis(x_most, 10, kLeft, kWidth - kRight);
  const Axis y = axis(y_most, 4, kHeight - kBottom, kTop);
  std::string out = fmt::format(
      "<figure><figcaption>{0}</figcaption>\n"
      "<svg viewBox=\"0 0 {1:g} {2:g}\" role=\"img\" aria-label=\"{0}\">\n{3}",
      escaped(plot.title), kWidth, kHeight, grid(x, y, plot));
  double numbered = -kWidth;
  for (const PlotMark& mark : plot.marks) {
    const bool room = x.at(mark.x) - numbered >= kNumber;
    if (room) numbered = x.at(mark.x);
    out += mark_line(mark, room, x, y);
  }
  for (std::size_t i = 0; i < plot.lines.size(); ++i) out += path(plot.lines[i], i, x, y);
  return out + "</svg>\n" + names(plot) + "</figure>\n";
}

std::string draw(const BarChart& chart) {
  constexpr double kRow = 22, kNames = 130, kTexts = 430;
  double most = chart.most;
  for (const Bar& bar : chart.bars) most = std::max(most, chart.most > 0 ? 0 : bar.value);
  if (!(most > 0)) most = 1;
  const double width = kWidth - kNames - kTexts;
  const double height = kRow * static_cast<double>(chart.bars.size()) + 4;
  std::string out = fmt::format(
      "<figure><figcaption>{0}</figcaption>\n"
      "<svg viewBox=\"0 0 {1:g} {2:g}\" role=\"img\" aria-label=\"{0}\">\n",
      escaped(chart.title), kWidth, height);
  double y = 2;
  for (const Bar& bar : chart.bars) {
    const double length = width * std::clamp(bar.value / most, 0.0, 1.0);
    out += fmt::format(
        "<text class=\"end\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>"
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"/>"
        "<text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n",
        kNames - 8, y + 15, escaped(bar.name), kNames, y + 3, length, kRow - 6, kNames + length + 8,
        y + 15, escaped(bar.text));
    y += kRow;
  }
  if (chart.goal > 0) {
    const double x = kNames + width * std::min(chart.goal / most, 1.0);
    out += fmt::format(
        "<line class=\"goal\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"0\" y2=\"{1:.1f}\"/>\n", x,
        height);
  }
  return out + "</svg></figure>\n";
}

}  // namespace antdt::page
