#include "trainer/sync/gaia/domain_replica.h"

#include <algorithm>

#include "core/check.h"

namespace antdt::sync::gaia {
namespace {

// As an assignment, but `to` keeps its arrays where it can: a map's assignment would make each of
// them anew, in memory that the kernel must first fill with zeros.
void assign_in_place(std::map<std::string, std::vector<float>>& to,
                     const std::map<std::string, std::vector<float>>& from) {
  std::erase_if(to, [&](const auto& entry) { return !from.contains(entry.first); });
  for (const auto& [domain, part] : from) to[domain].assign(part.begin(), part.end());
}

}  // namespace

void DomainReplica::settle() {
  pending_ = false;
  in_step_ = false;
  parts_.clear();
}

void DomainReplica::begin(std::span<const float> values) {
  ANTDT_CHECK(!in_step_, "a second exchange in one step");
  in_step_ = true;
  kept_.pending = pending_;
  kept_.values.assign(values.begin(), values.end());
  if (!pending_) {
    known_.assign(values.begin(), values.end());
    parts_.clear();
    pending_ = true;
    return;
  }
  ANTDT_CHECK(known_.size() == values.size(), "{} known values of {}", known_.size(),
              values.size());
  kept_.known.assign(known_.begin(), known_.end());
  assign_in_place(kept_.parts, parts_);
}

std::uint64_t DomainReplica::encode(const Stamp& stamp, std::span<const float> offered,
                                    float threshold, std::vector<std::byte>& out) {
  return encoder_.encode(stamp, 0, offered, known_, threshold, out);
}

void DomainReplica::receive(const std::string& domain, const Message& message,
                            std::span<float> values) {
  apply(message, Direction::kAdd, values, known_);
  std::vector<float>& part = parts_[domain];
  if (message.stamp.whole) {
    part.assign(values.size(), 0.0F);
  } else {
    part.resize(values.size());
    add(message, part);
  }
}

void DomainReplica::withdraw_all_but(std::span<const std::string> domains,
                                     std::span<float> values) {
  if (!pending_) return;
  std::erase_if(parts_, [&](const auto& entry) {
    const auto& [domain, part] = entry;
    if (std::ranges::find(domains, domain) != domains.end()) return false;
    for (std::size_t i = 0; i < part.size(); ++i) {
      values[i] -= part[i];
      known_[i] -= part[i];
    }
    return true;
  });
}

void DomainReplica::applied() {
  if (!in_step_) return settle();
  in_step_ = false;
}

void DomainReplica::restore(std::span<float> values) {
  if (!in_step_) return;
  in_step_ = false;
  std::ranges::copy(kept_.values, values.begin());
  pending_ = kept_.pending;
  if (!pending_) return;
  known_.swap(kept_.known);
  parts_.swap(kept_.parts);
}

}  // namespace antdt::sync::gaia
