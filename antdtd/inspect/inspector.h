// Answers what `antdt doctor` asks this host, in the process of a file service: it may block, and
// has the user's rights only.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "antdtd/inspect/disk_facts.h"
#include "antdtd/inspect/link_probe.h"
#include "core/wire/envelope.h"

namespace antdt::antdtd {

class Inspector {
 public:
  // `run_dir`: with which the file service was asked for. Only its disk is tried.
  explicit Inspector(std::string run_dir) : run_dir_(std::move(run_dir)) {}
  [[nodiscard]] static bool is_for(std::string_view kind);
  // The answer, with the request's peer, job and seq, or Refused with the reason. For kinds with
  // is_for().
  [[nodiscard]] wire::Packet answer(const wire::Envelope& envelope, const wire::Packet& request);

 private:
  std::string run_dir_;
  DiskFacts disks_;
  std::optional<LinkListener> listener_;  // the last one; another ends it
};

}  // namespace antdt::antdtd
