// A run whose directory may be on a filesystem that does not answer. Commands that look at a run
// report that instead of waiting forever, find the job daemon by the runtime directory, and ask it
// all the same.
#pragma once

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "core/clock.h"
#include "core/result.h"
#include "launcher/commands/operate/running_job.h"

namespace antdt::cli {

inline constexpr Duration kDiskPatience = std::chrono::seconds(3);

// Returns what `work` finds, on a thread that is left behind if it takes too long. `work` must own
// everything it uses.
template <class Work>
auto within(Duration patience, Work work) -> std::optional<decltype(work())> {
  auto done = std::make_shared<std::promise<decltype(work())>>();
  auto found = done->get_future();
  std::thread([done, work = std::move(work)]() mutable { done->set_value(work()); }).detach();
  if (found.wait_for(patience) != std::future_status::ready) return {};
  return found.get();
}

// A link to the job daemon of the run that `name` refers to, as far as that can be found without
// the run's own files. kUnreachable says that the run's filesystem does not answer, and that no
// daemon was found.
[[nodiscard]] Result<RunningJob> reach_without_files(const std::string& name);

}  // namespace antdt::cli
