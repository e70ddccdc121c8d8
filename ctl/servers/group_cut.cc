#include "ctl/servers/group_cut.h"

#include <fmt/format.h>

namespace antdt::ctl::servers {

bool GroupCut::abandon_last() {
  if (last_ == 0) return false;
  if (is_last()) cut_.reset();
  last_ = 0;
  return true;
}

void GroupCut::restore(std::uint64_t number) {
  if (number != 0) order(number);
}

bool GroupCut::is_due(MonoTime now) const {
  return cut_ && (!cut_->said || now - *cut_->said >= kRepeat);
}

wire::PsCut GroupCut::order_in(Generation generation) const {
  return {cut_->number, wire::slices_directory(cut_->number, generation)};
}

// From: said. To: said; written, with the last part; given up, if the server could not write.
std::optional<ConcludeCut> GroupCut::save(Member server, const wire::PsSaved& said,
                                          std::size_t servers, Generation generation) {
  if (!said.error.empty()) {
    // A server that no worker has opened yet has nothing to write, and is at update 0.
    const bool had_slices = said.version > 0;
    return give_up(fmt::format("{}: {}", server.worker, said.error),
                   had_slices ? std::optional(server) : std::nullopt);
  }
  cut_->saved[server] = said;
  if (cut_->saved.size() < servers) return std::nullopt;
  return finish(generation);
}

// From: said. To: written; given up, if the parts are not of the same state.
ConcludeCut GroupCut::finish(Generation generation) {
  ConcludeCut done;
  done.number = cut_->number;
  done.directory = order_in(generation).directory;
  done.version = cut_->saved.begin()->second.version;
  for (const auto& [server, saved] : cut_->saved) {
    if (saved.version != done.version) {
      return give_up(fmt::format("{} wrote the state after {} updates, another server after {}",
                                 server.worker, saved.version, done.version));
    }
    done.files.insert(done.files.end(), saved.files.begin(), saved.files.end());
    done.writers.resize(done.files.size(), server);
    done.places.insert(done.places.end(), saved.places.begin(), saved.places.end());
  }
  cut_.reset();
  return done;
}

// From: ordered, said. To: given up.
ConcludeCut GroupCut::give_up(const std::string& why, std::optional<Member> unwritten) {
  ConcludeCut done;
  done.number = cut_->number;
  done.unwritten = unwritten;
  done.error = fmt::format("checkpoint {}: {}", cut_->number, why);
  cut_.reset();
  return done;
}

}  // namespace antdt::ctl::servers
