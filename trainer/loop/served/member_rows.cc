// What the driver of a member does about embedding rows that are on servers.
#include <memory>
#include <utility>

#include "core/check.h"
#include "trainer/loop/member_driver.h"

namespace antdt::trainer {

using worker::Input;
using worker::TimeUse;

void MemberDriver::perform(const worker::UseServers& effect) {
  ANTDT_CHECK(parts_.rows != nullptr, "generation {} has servers, and this member no rows there",
              machine_.generation());
  auto link = parts_.rows->use(effect.group, effect.servers);
  // What is wrong with it is said by the first pull.
  if (link) abort_together(std::move(*link));
}

// The end of the generation ends what waits for servers as well as what waits for members.
void MemberDriver::abort_together(std::shared_ptr<StepRows::Link> link) {
  struct Both {
    std::shared_ptr<Collective> collective;
    std::shared_ptr<StepRows::Link> link;
    void abort() {
      collective->abort();
      link->abort();
    }
  };
  tools_.guard.hold(std::make_shared<Both>(collective_, std::move(link)));
}

wire::PsConcluded MemberDriver::concluded() const {
  const worker::TrainingState& training = machine_.training();
  return {machine_.generation(),
          collective_->size(),
          training.step,
          training.weight,
          training.rate,
          training.cut,
          {}};
}

Status MemberDriver::pull(const data::Examples& examples) {
  HostedRows* const rows = tools_.engine.hosted_rows();
  if (rows == nullptr) return {};
  const Timed waiting(tools_.account, TimeUse::kCollectiveWait);
  return parts_.rows->pull(*rows, examples, concluded());
}

Input MemberDriver::perform(const worker::SendPart&) {
  const Status sent =
      parts_.rows->send(*tools_.engine.hosted_rows(), concluded(), collective_->rank());
  if (!sent) return worker::rows_failed(sent.error());
  return worker::PartSent{};
}

Input MemberDriver::perform(const worker::AwaitPartStaged&) {
  const Status staged = parts_.rows->await_staged();
  if (!staged) return worker::rows_failed(staged.error());
  return worker::PartStaged{};
}

// Servers write their part of a checkpoint into the same directory. After an ordered checkpoint,
// the member's next message to them says which step it is of; after the last step there is none.
bool MemberDriver::save_rows(worker::Save& effect) {
  wire::CheckpointWritten& about = effect.about;
  about.directory = tools_.client.run_dir() + "/" + parts_.rows->directory_of(about.number);
  if (effect.kind == worker::Save::Kind::kOrdered) return true;
  const Status told = parts_.rows->conclude(*tools_.engine.hosted_rows(), concluded());
  if (told) return true;
  about.error = told.error().message;
  saves_.put(std::move(about));
  return false;
}

}  // namespace antdt::trainer
