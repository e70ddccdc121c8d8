// A client's link to a job in its own process.
#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "core/os/owned_fd.h"
#include "core/result.h"
#include "trainer/c_api/alone/local_job.h"
#include "trainer/client/agent_link.h"

namespace antdt::capi {

class LocalLink final : public client::AgentLink {
 public:
  [[nodiscard]] static Result<std::unique_ptr<LocalLink>> open(LocalJobConfig config);

  [[nodiscard]] transport::SendOutcome send(const wire::Packet& packet) override;
  [[nodiscard]] std::optional<wire::Packet> receive() override;
  [[nodiscard]] int fd() const override { return readable_.get(); }

 private:
  LocalLink(LocalJobConfig config, OwnedFd readable)
      : job_(std::move(config)), readable_(std::move(readable)) {}

  LocalJob job_;
  OwnedFd readable_;  // an eventfd, above 0 while there are answers
  std::deque<wire::Packet> answers_;
};

}  // namespace antdt::capi
