// antdt run --resume: a run that has ended or broke off goes on.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/result.h"
#include "launcher/view/live_view.h"

namespace antdt::cli {

struct ResumeOptions {
  std::string run;
  bool from_checkpoint = false;  // whether the journal is put aside
  bool grow = false;             // whether records were added to the training data (grow.h)
  std::vector<std::string> set;  // KEY=VALUE: settings to change (resume_settings.h)
  bool json = false;
  bool detach = false;
  std::optional<launcher::LentHosts> lent = {};
  std::string lost_host = {};  // the machine on which it was started, if that is lost
};

// Checks that the run can go on: it does not run, is not done, its journal is sound, and its data
// is what it began with. Prints from which checkpoint it goes on and which ones are damaged. Then
// starts a private agent and the job daemon on its directory, and shows the run as `antdt run`
// does. Returns the exit code.
//
// `grow`: the epochs that begin from now on have all records that the data have now; the epoch that
// is under way keeps its number.
// `from_checkpoint`: goes on without the journal, which is kept under another name; records that
// the newest complete checkpoint does not contain are trained again.
// `lost_host`: a run that another machine started and has not ended may go on there, unseen, and is
// resumed only if that machine is named here, or hosts are lent: whoever lends hosts ends what ran
// on those of the time before.
[[nodiscard]] Result<int> resume(const ResumeOptions& options);

}  // namespace antdt::cli
