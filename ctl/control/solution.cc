#include "ctl/control/solution.h"

#include "core/overloaded.h"
#include "ctl/control/solutions/backup_workers.h"
#include "ctl/control/solutions/dd.h"
#include "ctl/control/solutions/dds.h"
#include "ctl/control/solutions/lb_bsp.h"
#include "ctl/control/solutions/nd.h"
#include "ctl/control/solutions/none.h"
#include "ctl/control/solutions/own.h"
#include "ctl/control/solutions/scout_skew.h"

namespace antdt::ctl {

std::string_view kind_of(const Action& action) {
  return std::visit(Overloaded{
                        [](const AdjustBatch&) { return "adjust-batch"; },
                        [](const AdjustLearningRate&) { return "adjust-learning-rate"; },
                        [](const SetSync&) { return "set-sync"; },
                        [](const BackupWorkers&) { return "backup-workers"; },
                        [](const KillRestart&) { return "kill-restart"; },
                        [](const Evict&) { return "evict"; },
                        [](const Resize&) { return "resize"; },
                    },
                    action);
}

std::string target_of(const Action& action) {
  return std::visit(Overloaded{
                        [](const AdjustBatch& a) { return to_string(a.because_of); },
                        [](const KillRestart& a) { return to_string(a.member.worker); },
                        [](const Evict& a) { return to_string(a.member.worker); },
                        [](const auto&) { return std::string("job"); },
                    },
                    action);
}

bool is_drastic(const Action& action) {
  return std::holds_alternative<KillRestart>(action) || std::holds_alternative<Evict>(action) ||
         std::holds_alternative<Resize>(action);
}

Result<std::unique_ptr<Solution>> make_solution(std::string_view name, const VisitRules& visits) {
  if (name == "none") return std::make_unique<solutions::None>();
  if (name == "dds") return std::make_unique<solutions::Dds>();
  if (name == "nd") return std::make_unique<solutions::Nd>();
  if (name == "dd") return std::make_unique<solutions::Dd>();
  if (name == "backup-workers") return std::make_unique<solutions::BackupWorkersFixed>();
  if (name == "command") return std::make_unique<solutions::Own>();
  if (name == "lb-bsp") return std::make_unique<solutions::LbBsp>();
  if (name == "skew-scout") return std::make_unique<solutions::ScoutSkew>(visits);
  return fail(ErrorKind::kUsage,
              "[control] solution = \"{}\" is none of \"none\", \"dds\", \"lb-bsp\", "
              "\"backup-workers\", \"nd\", \"dd\", \"skew-scout\", \"command\"",
              name);
}

}  // namespace antdt::ctl
