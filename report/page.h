// Pages and their parts. Pure: from values to HTML.
#pragma once

#include <string>
#include <vector>

#include "launcher/view/status_view.h"
#include "report/plot.h"

namespace antdt::page {

// A whole page around the HTML text `body`, with its style.
[[nodiscard]] std::string html(const std::string& title, const std::string& body);

// A table of text cells. Columns whose header ends with '#' contain numbers, as in
// launcher/view/text_table.h.
[[nodiscard]] std::string table(const std::vector<std::string>& header,
                                const std::vector<std::vector<std::string>>& rows);

// What the page of a run shows.
struct WorkerPoint {
  double time_s = 0;  // the middle of its time span, in the job's time
  double batch = 0;   // samples per step
  double speed = 0;   // speed of its own work, samples/s; 0: it did none
};
struct WorkerLine {
  std::string name;
  std::vector<WorkerPoint> points;
};
// A table with lines of text above and below it.
struct TableView {
  std::vector<std::string> above;
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> below;
};
struct RunView {
  std::string heading;
  std::vector<std::string> summary;  // lines for people; empty: the run has not ended
  std::vector<WorkerLine> workers;
  double width_s = 1;  // time span of a point; a longer distance is a gap
  std::vector<launcher::EventView> events;
  TableView bill;     // bill.h; without rows: the run has not ended
  TableView traffic;  // what its workers exchanged; without rows: nothing, or not known
  TableView what_if;  // what it could have been; without rows: not known
};
// Each worker's batch and speed over time, with numbered marks for actions and failures, a list of
// these by their numbers, the bill, what was exchanged, what the run could have been, and the
// summary. `level`: level of the heading, 1 to 3.
[[nodiscard]] std::string run_section(const RunView& run, int level);

}  // namespace antdt::page
