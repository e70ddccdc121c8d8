#include "antdtd/shim/process_key.h"

namespace antdt::antdtd {

bool valid_job_id(std::string_view job) {
  constexpr std::size_t kMaxLength = 128;
  if (job.empty() || job.size() > kMaxLength || job.front() == '.') return false;
  for (const char c : job) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    const bool digit = c >= '0' && c <= '9';
    if (!letter && !digit && c != '-' && c != '_' && c != '.') return false;
  }
  return true;
}

}  // namespace antdt::antdtd
