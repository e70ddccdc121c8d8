// The checkpoints of a group, and the last one, from which a group of another size begins.
#include <fmt/format.h>

#include <utility>

#include "ctl/servers/server_group.h"

namespace antdt::ctl {

wire::PsCut ServerGroup::cut_order() const {
  return {cut_->number, fmt::format("checkpoints/.tmp-{}-g{}", cut_->number, generation_)};
}

void ServerGroup::on(const servers::OrderCut& e, Effects& out) {
  if (cut_) cut_failed("another one was ordered", out);
  cut_ = Cut{e.number, {}, {}};
  if (state_ != State::kServing) return cut_failed("no servers serve the model now", out);
  if (e.last) {
    last_cut_ = e.number;
    return tell_servers(out);
  }
  out.emplace_back(servers::Changed{});
  say_cut(out);
}

// To those that have not saved it. Nobody hears of the last one before all know that it is.
void ServerGroup::say_cut(Effects& out) {
  if (!leaving_.empty()) return;
  if (cut_->number == last_cut_ && heard_by_all() < number_) return;
  cut_->said = now_;
  for (const ServerSeat& seat : seats_) {
    const Member server = process(seat.primary).member();
    if (cut_->saved.contains(server)) continue;
    out.emplace_back(servers::SendCut{server, generation_, cut_order()});
  }
}

void ServerGroup::cut_failed(std::string error, Effects& out, std::optional<Member> unwritten) {
  servers::CutDone done;
  done.number = cut_->number;
  done.unwritten = unwritten;
  done.error = fmt::format("checkpoint {}: {}", cut_->number, error);
  cut_.reset();
  out.emplace_back(servers::Changed{});
  out.emplace_back(std::move(done));
}

void ServerGroup::on(const servers::Saved& e, Effects& out) {
  const bool ours = cut_ && e.said.number == cut_->number && e.generation == generation_;
  if (!ours || state_ != State::kServing || find_seat(e.server) == nullptr) return;
  if (!e.said.error.empty()) {
    // One that no worker has opened yet has nothing to write, and is at no update.
    const bool had_slices = e.said.version > 0;
    return cut_failed(fmt::format("{}: {}", e.server.worker, e.said.error), out,
                      had_slices ? std::optional(e.server) : std::nullopt);
  }
  cut_->saved[e.server] = e.said;
  if (cut_->saved.size() == seats_.size()) finish_cut(out);
}

void ServerGroup::finish_cut(Effects& out) {
  servers::CutDone done;
  done.number = cut_->number;
  done.directory = cut_order().directory;
  done.version = cut_->saved.begin()->second.version;
  for (const auto& [server, saved] : cut_->saved) {
    if (saved.version != done.version) {
      return cut_failed(fmt::format("{} wrote the state after {} updates, another server after {}",
                                    server.worker, saved.version, done.version),
                        out);
    }
    done.files.insert(done.files.end(), saved.files.begin(), saved.files.end());
    done.writers.resize(done.files.size(), server);
    done.places.insert(done.places.end(), saved.places.begin(), saved.places.end());
  }
  cut_.reset();
  out.emplace_back(servers::Changed{});
  out.emplace_back(std::move(done));
}

// What a server kept of its rows would be of other slices than those it is to have.
void ServerGroup::on(const servers::Resize& e, Effects& out) {
  count_ = e.count;
  if (state_ != State::kGathering) {
    over(fmt::format("it is placed on {} servers now", count_), out);
  }
  if (!keepers_.empty()) {
    keepers_.clear();
    state_lost_ = true;
    lost_said_ = false;
  }
  out.emplace_back(servers::Changed{});
}

void ServerGroup::on(const servers::GoOn&, Effects& out) {
  if (last_cut_ == 0) return;
  if (cut_ && cut_->number == last_cut_) cut_.reset();
  last_cut_ = 0;
  tell_of_change(out);
}

}  // namespace antdt::ctl
