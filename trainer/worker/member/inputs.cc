#include "trainer/worker/member/inputs.h"

#include "core/overloaded.h"

namespace antdt::worker {

std::optional<Input> input_of(client::Directive directive) {
  const Generation of = directive.generation;
  using Some = std::optional<Input>;
  return std::visit(Overloaded{[&](wire::Form& form) -> Some {
                                 return FormOrdered{of, std::move(form)};
                               },
                               [&](wire::Roster& roster) -> Some {
                                 return RosterArrived{of, std::move(roster)};
                               },
                               [&](wire::Settle& settle) -> Some {
                                 return GenerationSettled{of, std::move(settle)};
                               },
                               [&](wire::PhaseStart& start) -> Some {
                                 return PhaseStarted{of, std::move(start)};
                               },
                               [&](wire::Abort& abort) -> Some {
                                 return GenerationAborted{of, abort.reason};
                               },
                               [&](wire::Regroup& regroup) -> Some {
                                 return RegroupOrdered{of, regroup.reason};
                               },
                               [&](wire::Leave& leave) -> Some { return LeaveOrdered{leave.code}; },
                               [&](wire::PsRoster&) -> Some { return std::nullopt; }},
                    directive.order);
}

Input group_failed(const Error& error) {
  const bool is_own = error.kind == ErrorKind::kUsage || error.kind == ErrorKind::kTooLarge ||
                      error.kind == ErrorKind::kInternal;
  if (is_own) return WorkFailed{error};
  return CollectiveBroke{error.message};
}

Input rows_failed(const Error& error) {
  Input failed = group_failed(error);
  const bool may_mend = std::holds_alternative<CollectiveBroke>(failed);
  // The end of the generation is no problem of the servers'.
  if (!may_mend || error.kind == ErrorKind::kAborted) return failed;
  using Cause = StateUnreadable::Cause;
  const bool damaged = error.kind == ErrorKind::kCorrupt;
  if (error.kind == ErrorKind::kPeerIo) return RowsUnread{error.message, Cause::kDisk};
  return RowsUnread{error.message, damaged ? std::optional(Cause::kContent) : std::nullopt};
}

}  // namespace antdt::worker
