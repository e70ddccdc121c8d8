// Pages and what is on them. Pure: from values to HTML.
#pragma once

#include <string>
#include <vector>

#include "launcher/view/status_view.h"
#include "report/plot.h"

namespace antdt::page {

// A whole page around `body`, which is HTML; the style is in it.
[[nodiscard]] std::string html(const std::string& title, const std::string& body);

// A table; cells are text. Columns whose header ends with '#' are of numbers, as in
// launcher/view/text_table.h.
[[nodiscard]] std::string table(const std::vector<std::string>& header,
                                const std::vector<std::vector<std::string>>& rows);

// Of a run, what its page shows.
struct WorkerPoint {
  double time_s = 0;  // the middle of what it tells of, in the job's time
  double batch = 0;   // samples of a step
  double speed = 0;   // of its own work, samples/s; 0: it had none
};
struct WorkerLine {
  std::string name;
  std::vector<WorkerPoint> points;
};
struct RunView {
  std::string heading;
  std::vector<std::string> summary;  // lines for people; empty: it has not ended
  std::vector<WorkerLine> workers;
  double width_s = 1;  // of what a point tells of; further apart is a gap
  std::vector<launcher::EventView> events;
};
// Each worker's batch and speed over time with actions and failures marked, a list of these
// by their numbers, and the summary. `level`: of the heading, 1 to 3.
[[nodiscard]] std::string run_section(const RunView& run, int level);

}  // namespace antdt::page
