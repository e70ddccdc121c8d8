// StepRows over sockets (trainer/ps_link/worker_link.h).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/transport/socket.h"
#include "trainer/loop/served/step_rows.h"
#include "trainer/ps_link/worker_link.h"

namespace antdt::trainer {

class LinkedRows final : public StepRows {
 public:
  struct Parts {
    Member self;
    std::uint64_t seed = 0;        // of the rows that servers draw: the job's
    transport::KeyPair keys = {};  // of this process, for servers that are reached over tcp
    std::function<Duration(std::size_t bytes)> send_delay = {};  // see ps::Peers
  };
  LinkedRows(transport::Context& context, Parts parts)
      : context_(context), parts_(std::move(parts)) {}

  [[nodiscard]] Result<std::shared_ptr<Link>> use(Generation group,
                                                  const wire::PsRoster& servers) override;
  void leave() override;
  [[nodiscard]] Status pull(HostedRows& rows, const data::Examples& batch,
                            wire::PsConcluded concluded) override;
  void add(std::vector<ps::TableGradient> gradients) override;
  void drop() override { part_.clear(); }
  [[nodiscard]] Status send(HostedRows& rows, wire::PsConcluded concluded,
                            std::uint32_t rank) override;
  [[nodiscard]] Status await_staged() override;
  [[nodiscard]] Status conclude(HostedRows& rows, wire::PsConcluded concluded) override;
  [[nodiscard]] std::string directory_of(std::uint64_t cut) const override;

 private:
  class Guarded;
  [[nodiscard]] Status connect(Generation group, const wire::PsRoster& servers);
  // Opens the tables, if that was not done over this link.
  [[nodiscard]] Status open(const HostedRows& rows);
  void complete(wire::PsConcluded& concluded) const;

  transport::Context& context_;
  const Parts parts_;
  Generation group_;
  std::shared_ptr<ps::WorkerLink> link_;
  std::optional<Error> unconnected_;  // why there is no link, in a generation that has servers
  bool open_ = false;
  std::vector<ps::TableGradient> part_;  // of the present step
};

}  // namespace antdt::trainer
