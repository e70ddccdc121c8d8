// The job daemon: the shell around a JobMachine (ctl/job/job_machine.h), which makes all decisions.
// This class opens the run and turns the loop's timers into inputs. The rest is divided by subject
// (shell.h): inbox and outbox, turns, hosts, operators, checkpoints.
//
// There is one loop. In a turn, messages become inputs of the machine, and its effects become
// journal records and messages in an outbox. At the end of the turn the journal commits once, and
// then the outbox is sent (turns.h): nothing is sent before what it depends on is durable.
//
// Once the loop runs, only threads touch files (disk/disks.h).
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "core/clock.h"
#include "core/loop.h"
#include "core/result.h"
#include "core/transport/socket.h"
#include "jobd/shell.h"
#include "launcher/start/resume_request.h"

namespace antdt::jobd {

class JobDaemon {
 public:
  // Takes the run's lock, reads its configuration, opens and replays the journal, binds jobd.sock
  // and begins to dial the agents. `clock` is the machine's clock; the loop's clock may stand still
  // (core/standstill_clock.h).
  [[nodiscard]] static Result<std::unique_ptr<JobDaemon>> open(EventLoop& loop, const Clock& clock,
                                                               transport::Context& context,
                                                               Options options);
  // Exit code of the job, after the loop was stopped.
  [[nodiscard]] int exit_code() const { return shell_->exit_code; }
  // Stops the job in good order, as if an operator asked for it.
  void stop_job(const std::string& reason, Duration grace) {
    shell_->operators.stop_job(reason, grace);
  }
  // To be called after the loop. False if a disk does not answer, so that the process can only be
  // left by _exit.
  [[nodiscard]] bool end_disks(Duration patience) {
    return shell_->checkpoints.copies().end(patience) && shell_->disks.end(patience);
  }

 private:
  explicit JobDaemon(std::unique_ptr<Shell> shell);
  [[nodiscard]] Status begin(const std::optional<launcher::ResumeRequest>& request,
                             bool begins_again);
  void start_own_program();  // if the job's solution is a program
  void tick();
  void control_tick();

  std::unique_ptr<Shell> shell_;
};

}  // namespace antdt::jobd
