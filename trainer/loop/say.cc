#include "trainer/loop/say.h"

#include "core/overloaded.h"

namespace antdt::trainer {

void say(client::Client& to, const TimeAccount& account, worker::Send& effect) {
  std::visit(
      Overloaded{[&](const wire::Join& join) { to.join(join); },
                 [&](const wire::Address& address) { to.send_address(address); },
                 [&](const wire::Ready& ready) { to.send_ready(ready); },
                 [&](const client::BeginPhase& begin) { to.begin_phase(begin.phase); },
                 [&](const client::SetHold& hold) { to.set_hold(hold.records); },
                 [&](client::Commit& commit) {
                   commit.partial ? to.commit(commit.place, std::move(*commit.partial))
                                  : to.commit(commit.place);
                 },
                 [&](const client::GiveBack& late) { to.give_back(late.records); },
                 [&](client::Skip& skip) { to.skip(std::move(skip.records)); },
                 [&](const client::BatchTimes& times) { to.report(times); },
                 [&](const wire::Progress& progress) {
                   to.time_account(account.seconds());
                   to.progress(progress);
                 },
                 [&](const wire::CheckpointBegun& begun) { to.checkpoint_begun(begun); },
                 [&](const wire::CheckpointWritten& written) { to.checkpoint_written(written); }},
      effect.what);
}

}  // namespace antdt::trainer
