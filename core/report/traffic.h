// What the members of a collective exchanged, as status and summary.json tell it.
// core/report/job_report.h says how fields are named.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace antdt::report {

// All that workers in one place exchanged with workers in another one, or among themselves. A place
// is a host, in a domain if the job has any; or a domain, and then the hosts are empty.
struct TrafficBetween {
  std::string from = {};  // host
  std::string from_domain = {};
  std::string to = {};  // host; empty: several hosts that are not told apart
  std::string to_domain = {};
  std::uint64_t sent_bytes = 0;
  std::uint64_t received_bytes = 0;
  double waited_seconds = 0;  // of all workers in `from`, for workers in `to`
  template <class Self, class V>
  static void fields(Self& m, V& v) {
    v("from", m.from);
    v("from_domain", m.from_domain);
    v("to", m.to);
    v("to_domain", m.to_domain);
    v("sent_bytes", m.sent_bytes);
    v("received_bytes", m.received_bytes);
    v("waited_seconds", m.waited_seconds);
  }
};

// Bytes that all workers sent, by what they were sent for, and by places.
struct Traffic {
  std::uint64_t gradients_bytes = 0;
  std::uint64_t parameters_bytes = 0;
  std::uint64_t slots_bytes = 0;
  std::uint64_t healing_bytes = 0;
  std::uint64_t other_bytes = 0;
  std::uint64_t shared_memory_bytes = 0;  // of all these: through the memory of a host
  std::vector<TrafficBetween> hosts = {};
  std::uint64_t hosts_left_out = 0;          // pairs that are not in `hosts`, with the fewest bytes
  std::vector<TrafficBetween> domains = {};  // if workers are in any
  template <class Self, class V>
  static void fields(Self& m, V& v) {
    v("gradients_bytes", m.gradients_bytes);
    v("parameters_bytes", m.parameters_bytes);
    v("slots_bytes", m.slots_bytes);
    v("healing_bytes", m.healing_bytes);
    v("other_bytes", m.other_bytes);
    v("shared_memory_bytes", m.shared_memory_bytes);
    v("hosts", m.hosts);
    v.if_any("hosts_left_out", m.hosts_left_out);
    v.if_any("domains", m.domains);
  }
};

}  // namespace antdt::report
