#include "sim/fleet/groups/sharing/shared_step.h"

#include <algorithm>
#include <utility>

namespace antdt::fleet {

using worker::sharing::Answer;
using worker::sharing::Input;

void SharedStep::after(double seconds, std::function<void()> what) {
  player_.world().after(from_seconds(seconds), [this, turn = turn_, what = std::move(what)] {
    if (turn == turn_) what();
  });
}

void SharedStep::begin(const std::vector<Worker*>& members, Generation generation, Step step,
                       std::function<void()> done) {
  ++turn_;
  if (generation != generation_) {
    generation_ = generation;
    make_groups(static_cast<std::uint32_t>(members.size()));
  }
  members_ = members;
  when_done_ = std::move(done);
  done_ = 0;
  asked_s_ = 0;
  step_ = step;
}

void SharedStep::make_groups(std::uint32_t members) {
  groups_.clear();
  seats_.clear();
  for (std::uint32_t rank = 0; rank < members; ++rank) {
    const auto ranks = worker::sharing::group_of(rank, members, rules_);
    if (rank == ranks.begin) {
      groups_.push_back({ranks, worker::sharing::ShareDesk(ranks.size(), rules_)});
    }
    seats_.push_back({worker::sharing::ShareSeat(rank - ranks.begin, rules_), groups_.size() - 1});
  }
}

void SharedStep::opened(Worker& member) {
  auto& seat = seats_[member.rank].seat;
  const auto part = static_cast<std::uint32_t>(member.records);
  send(member.rank, seat.begin(step_, part, member.share.micro_batch));
  compute(member.rank, seat.first_run().records());
}

void SharedStep::compute(std::uint32_t rank, std::uint32_t records) {
  if (records == 0) return computed(rank);
  const double seconds = player_.work(*members_[rank], records);
  members_[rank]->own_s += seconds;
  members_[rank]->computed += records;
  after(seconds, [this, rank] { computed(rank); });
}

void SharedStep::computed(std::uint32_t rank) {
  if (const auto asked = seats_[rank].seat.ready()) {
    seats_[rank].asked = player_.now();
    return send(rank, *asked);
  }
  if (++done_ == members_.size()) when_done_();
}

void SharedStep::send(std::uint32_t rank, const Input& input) {
  after(player_.costs().ask_s / 2,
        [this, group = seats_[rank].group, input] { arrive(group, input); });
}

void SharedStep::arrive(std::size_t group, const Input& input) {
  Group& at = groups_[group];
  at.free = std::max(at.free, player_.now()) + from_seconds(player_.costs().desk_s);
  after(to_seconds(at.free - player_.now()), [this, group, input] {
    worker::sharing::Effects answers;
    groups_[group].desk.step(input, player_.now(), answers);
    for (const Answer& answer : answers) {
      after(player_.costs().ask_s / 2, [this, group, answer] { answered(group, answer); });
    }
  });
}

void SharedStep::answered(std::size_t group, const Answer& answer) {
  const std::uint32_t rank = groups_[group].ranks.begin + answer.member;
  Seat& seat = seats_[rank];
  const auto run = seat.seat.hear(answer);
  if (!run) return;
  asked_s_ += to_seconds(player_.now() - seat.asked);
  compute(rank, run->records());
}

}  // namespace antdt::fleet
