#include "sim/members/member_files.h"

#include <utility>

#include "sim/files.h"
#include "sim/members/worker.h"
#include "sim/surroundings.h"

namespace antdt::sim {
namespace {

// A checkpoint is read and written in this number of parts; reports say how many are done.
constexpr std::uint64_t kParts = 40;
constexpr std::uint64_t kPartBytes = 1'000'000;

}  // namespace

MemberFiles::Answer MemberFiles::perform(const worker::ReadState& effect) {
  return read_on(effect.directory, 0);
}

MemberFiles::Answer MemberFiles::read_on(const std::string& directory, std::uint64_t parts) {
  if (worker_.end_of_generation().over() || worker_.wants_to_leave()) {
    say_no_io();
    return worker::StateUnreadable{"nobody waits for it any more",
                                   worker::StateUnreadable::Cause::kInterrupted};
  }
  if (worker_.shape().read_time > Duration::zero() && parts < kParts) {
    say_io("reading the checkpoint", directory, parts);
    worker_.answer_after(worker_.shape().read_time / kParts,
                         [this, directory, parts] { return read_on(directory, parts + 1); });
    return {};
  }
  say_no_io();
  const SharedFiles& files = worker_.around().files;
  if (files.away) {
    return worker::StateUnreadable{"the file server does not answer",
                                   worker::StateUnreadable::Cause::kDisk};
  }
  const Trained* const saved = files.read(directory);
  if (saved == nullptr) return worker::StateUnreadable{"it is damaged"};
  model_ = saved->model;
  return worker::StateRead{saved->step};
}

MemberFiles::Answer MemberFiles::perform(worker::Save& effect) {
  const Member self = worker_.member();
  effect.about.directory = fmt::format(".tmp-{}-g{}-{}.{}", effect.about.step, worker_.generation(),
                                       self.worker, self.attempt);
  if (effect.apart) effect.about.directory += fmt::format("-{}", effect.about.number);
  const bool is_last = effect.kind == worker::Save::Kind::kFinalModel;
  writing_ = Writing{++writings_, std::move(effect), {model_, worker_.step()}};
  if (worker_.shape().has_served_rows()) return write_beside_rows(is_last);
  write_on(writings_, 0);
  return {};
}

// The servers hear of an ordered checkpoint with the member's next message; after the last step
// there is none.
MemberFiles::Answer MemberFiles::write_beside_rows(bool is_last) {
  wire::CheckpointWritten& about = writing_->save.about;
  about.directory = fmt::format("{}/{}", kRunDirectory, worker_.rows().directory_of(about.number));
  if (!is_last) {
    write_on(writings_, 0);
    return {};
  }
  worker_.rows().conclude([this, number = writings_](std::string error) {
    if (!writing_ || writing_->number != number) return;
    error.empty() ? write_on(number, 0) : written(std::move(error));
  });
  return {};
}

void MemberFiles::write_on(std::uint64_t number, std::uint64_t parts) {
  if (!writing_ || writing_->number != number) return;
  const Duration write_time = worker_.shape().write_time;
  if (write_time > Duration::zero() && parts < kParts) {
    say_io("writing the checkpoint", writing_->save.about.directory, parts);
    return worker_.later(write_time / kParts,
                         [this, number, parts] { write_on(number, parts + 1); });
  }
  written(worker_.around().files.write(writing_->save.about.directory, writing_->state));
}

void MemberFiles::written(std::string error) {
  say_no_io();
  const worker::Save save = std::move(std::exchange(writing_, std::nullopt)->save);
  saved_ = save.about;
  saved_->error = std::move(error);
  worker_.saved(*saved_, save.kind);
}

MemberFiles::Answer MemberFiles::perform(const worker::GiveUpSaving& effect) {
  if (writing_) written(effect.reason);
  return {};
}

void MemberFiles::say_io(const char* what, const std::string& path, std::uint64_t parts) {
  constexpr Duration kMoment = std::chrono::seconds(2);
  const MonoTime now = worker_.world().now();
  if (!moves_since_ || now - moved_ > kMoment) moves_since_ = now;
  moved_ = now;
  worker_.say_io({what, path, parts * kPartBytes, kParts * kPartBytes});
}

void MemberFiles::say_no_io() {
  moves_since_.reset();
  worker_.say_io({});
}

}  // namespace antdt::sim
