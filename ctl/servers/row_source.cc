#include "ctl/servers/row_source.h"

#include <algorithm>
#include <utility>

namespace antdt::ctl::servers {

void RowSource::choose(const RestoreChosen& chosen) {
  restore_ = chosen.restore;
  version_ = chosen.version;
  state_ = State::kKnown;
}

bool RowSource::may_ask_again(Trouble why) {
  if (restore_.empty() || why == Trouble::kServers) return false;
  return why == Trouble::kDisk || std::exchange(damaged_, restore_) != restore_;
}

bool RowSource::ask_once() {
  if (state_ != State::kLost) return false;
  state_ = State::kAsked;
  return true;
}

bool RowSource::keeps(Member server) const {
  return std::ranges::find(keepers_, server) != keepers_.end();
}

void RowSource::forget_keepers(const std::function<bool(Member)>& which) {
  if (std::erase_if(keepers_, which) > 0) state_ = State::kLost;
}

void RowSource::restore_image(const ServerGroupImage& image) {
  state_ = image.state_lost ? State::kLost : State::kKnown;
  restore_ = image.restore;
  version_ = image.version;
  keepers_ = all_from_wire(image.keepers);
}

}  // namespace antdt::ctl::servers
