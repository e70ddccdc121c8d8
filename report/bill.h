// The bill of a run: where the time of its workers went, by culprit, cause and remedy. Pure.
//
// The summary says how each worker spent its time (TimeSpent), but not for whom it waited: all but
// the slowest worker of a step wait, and the slowest one only computes. The series of measurements
// (shard_server/history/series.h) shows second by second who was the slowest, why, and so to whom
// the waiting of the others is charged.
//
//   what a worker waited in a second = what the slowest waited, too     -> the exchange itself
//                                    + the rest                         -> the slowest, if it is
//                                                                          a straggler
//   what a straggler computed        = what its peers need for as much  -> useful
//                                    + the rest                         -> the straggler
//
// The sums are those of the summary exactly: for each worker, what the series shows is scaled to
// the summary's figure, because a report may be missing in the series. So
//
//   useful + the sum of all charges = the sum of all fields of the summary's lost_time
//
// and the charges of each `part` but "compute" add up to that field of lost_time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/report/job_report.h"
#include "core/sync_strategy.h"
#include "shard_server/history/series.h"

namespace antdt::report {

struct Charge {
  std::string culprit = {};  // "w3"; "all": nobody in particular
  std::string host = {};     // of the culprit's last attempt; empty if there is none
  std::string cause = {};    // "slow computing", "slow data", "exchange", "start", ...
  std::string remedy = {};   // what had been done about it by then; "none"
  std::string part = {};     // the field of lost_time that contains it
  double seconds = 0;        // of workers
  template <class Self, class V>
  static void fields(Self& m, V& v) {
    v("culprit", m.culprit);
    v("host", m.host);
    v("cause", m.cause);
    v("remedy", m.remedy);
    v("part", m.part);
    v("seconds", m.seconds);
  }
};

struct Bill {
  double total_seconds = 0;          // the sum of lost_time
  double useful_seconds = 0;         // computing, as fast as peers do
  double lost_seconds = 0;           // the sum of all charges
  std::vector<Charge> charges = {};  // the largest first
  // Beside the sums: computing that was repeated after going back to a checkpoint, and time in
  // which wanted workers did not run.
  double repeated_seconds = 0;
  double absent_seconds = 0;
  template <class Self, class V>
  static void fields(Self& m, V& v) {
    v("total_seconds", m.total_seconds);
    v("useful_seconds", m.useful_seconds);
    v("lost_seconds", m.lost_seconds);
    v("charges", m.charges);
    v("repeated_seconds", m.repeated_seconds);
    v("absent_seconds", m.absent_seconds);
  }
};

// `sync`: with ps-asp and shadow-… no worker waits for another one.
[[nodiscard]] Bill bill_of(const Summary& summary, const shard_server::Series& series,
                           SyncStrategy sync);

// The bill as a table for people, with its sums above. A charge below a thousandth of the total is
// left out of the table.
struct BillTable {
  std::vector<std::string> sums;
  std::vector<std::string> header;  // as in launcher/view/text_table.h
  std::vector<std::vector<std::string>> rows;
};
[[nodiscard]] BillTable table_of(const Bill& bill);

}  // namespace antdt::report
