// What the job wants done, carried out: what is to be durable is appended to the journal, what is
// to be sent is put into the outbox, and files are left to their threads.
#pragma once

#include "ctl/job/job_events.h"
#include "ctl/job/report.h"

namespace antdt::jobd {

struct Shell;

class EffectRunner {
 public:
  explicit EffectRunner(Shell& shell) : shell_(shell) {}

  void carry_out(ctl::job::Effect& effect);
  // For events.jsonl, the log and the live view.
  void publish(const ctl::job::PublishNote& o);

 private:
  void send(ctl::job::SendToWorker& o);
  void end(const ctl::lifecycle::EndJob& o);
  void write_summary(const ctl::JobReport& last);

  Shell& shell_;
};

}  // namespace antdt::jobd
