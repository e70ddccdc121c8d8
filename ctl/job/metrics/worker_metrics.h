// The part of a job's metrics that is about its workers and servers. Pure.
#pragma once

#include "core/metrics/metric.h"
#include "ctl/job/report.h"

namespace antdt::ctl {

void add_worker_metrics(const JobReport& report, metrics::Families& out);
void add_server_metrics(const JobReport& report, metrics::Families& out);

}  // namespace antdt::ctl
