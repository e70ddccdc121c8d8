// What workers compute on: what each says when it joins, and what job.toml says
// instead ([[device]]).
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/ids.h"
#include "ctl/monitor/view.h"

namespace antdt::ctl {

// An entry of [[device]]. An empty class and 0 samples: it says nothing of that.
struct DeviceRule {
  std::vector<std::string> workers;  // ids; none: all
  std::string host;                  // that run on the host of this name; empty: on any
  Device device;

  [[nodiscard]] bool is_for(WorkerId worker, std::string_view on_host) const;
};

class Devices {
 public:
  static constexpr std::size_t kLongestName = 128;

  explicit Devices(std::vector<DeviceRule> rules) : rules_(std::move(rules)) {}

  // Whether that is news, to be kept. A later attempt takes the place of an earlier one; of what
  // one attempt says of its memory the least counts.
  bool say(Member member, Device device);
  // The member ran out of its device's memory, which holds so many samples of a micro-batch.
  // Whether that is news, to be kept. It is true of this attempt: a later one finds out for itself.
  bool ran_out(Member member, std::uint32_t max_micro_batch);
  // The first rule for the worker that says something of it, else what it said itself.
  [[nodiscard]] Device of(Member member, std::string_view host) const;

  // What members said, for the journal.
  struct Said {
    Member member;
    Device device;
    template <class Self, class V>
    static void fields(Self& m, V& v) {
      v("worker", m.member.worker);
      v("attempt", m.member.attempt);
      v("device", m.device);
    }
  };
  [[nodiscard]] std::vector<Said> said() const;
  void restore(const std::vector<Said>& said);

 private:
  struct Entry {
    Attempt attempt;
    Device device;
  };
  std::vector<DeviceRule> rules_;
  std::map<WorkerId, Entry> said_;
};

}  // namespace antdt::ctl
