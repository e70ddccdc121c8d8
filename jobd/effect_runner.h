// Carries out the job's effects: durable records are appended to the journal, messages are put into
// the outbox, and file operations are passed to their threads.
#pragma once

#include "ctl/job/job_events.h"
#include "ctl/job/report.h"

namespace antdt::jobd {

struct Shell;

class EffectRunner {
 public:
  explicit EffectRunner(Shell& shell) : shell_(shell) {}

  void carry_out(ctl::job::Effect& effect);
  // Writes to events.jsonl, the log and the live view.
  void publish(const ctl::job::PublishNote& o);

 private:
  void send(ctl::job::SendToWorker& o);
  void end(const ctl::lifecycle::EndJob& o);
  void write_summary(const ctl::JobReport& last);

  Shell& shell_;
};

}  // namespace antdt::jobd
