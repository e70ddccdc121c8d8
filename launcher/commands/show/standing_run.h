// A run whose directory may lie on a filesystem that does not answer: commands that look at a run
// say so instead of waiting for ever, and ask its job daemon all the same, which they find by
// the runtime directory.
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

// What `work` finds, on a thread that is left behind if it takes longer. It must own what it uses.
template <class Work>
auto within(Duration patience, Work work) -> std::optional<decltype(work())> {
  auto done = std::make_shared<std::promise<decltype(work())>>();
  auto found = done->get_future();
  std::thread([done, work = std::move(work)]() mutable { done->set_value(work()); }).detach();
  if (found.wait_for(patience) != std::future_status::ready) return {};
  return found.get();
}

// A link to the job daemon of the run that `name` means, as far as that can be told without the
// run's own files. kUnreachable says that its filesystem does not answer, and nobody else.
[[nodiscard]] Result<RunningJob> reach_without_files(const std::string& name);

}  // namespace antdt::cli
