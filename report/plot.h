// Plots as SVG, to be put into a page (page.h), which defines their colours. Pure.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace antdt::page {

// Escapes &, <, > and quotes for HTML and SVG.
[[nodiscard]] std::string escaped(const std::string& text);

struct PlotLine {
  std::string name;
  std::vector<std::pair<double, double>> points;  // by rising x; a y that is NaN is a gap
};

// An event at a moment; it is described by its number beside the plot.
struct PlotMark {
  double x = 0;
  std::string label;  // a few characters
  std::string text;   // all of it
};

struct Plot {
  std::string title;
  std::string x_unit, y_unit;
  std::vector<PlotLine> lines;
  std::vector<PlotMark> marks;
};
// Axes, lines (each shows its name under the pointer), marks, and a legend below. Lines with more
// points than a screen shows are drawn by means.
[[nodiscard]] std::string draw(const Plot& plot);

struct Bar {
  std::string name;
  double value = 0;
  std::string text;  // beside it
};
struct BarChart {
  std::string title;
  std::vector<Bar> bars;
  double most = 0;  // the value of a full width; 0: the largest
  double goal = 0;  // where a line is drawn for the goal; 0: none
};
[[nodiscard]] std::string draw(const BarChart& chart);

// The least of 1, 2 and 5 times a power of ten that is at least `least`.
[[nodiscard]] double round_step(double least);

}  // namespace antdt::page
