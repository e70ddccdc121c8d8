// Requests of operators, on the job's own socket, and of administrators of the cluster, through an
// agent that has checked who they are.
#pragma once

#include <string>
#include <string_view>

#include "core/result.h"
#include "core/wire/admin_messages.h"
#include "core/wire/drill_messages.h"
#include "core/wire/envelope.h"
#include "core/wire/operator_messages.h"
#include "core/wire/packet.h"

namespace antdt::jobd {

struct Shell;

class OperatorDesk {
 public:
  explicit OperatorDesk(Shell& shell) : shell_(shell) {}

  void answer(const wire::Packet& packet, const wire::Envelope& envelope);
  void on_admin_order(const std::string& endpoint, const wire::Envelope& envelope,
                      std::string_view body);
  [[nodiscard]] wire::StatusReply status_for(const wire::StatusRequest& request) const;
  // Stops the job in good order.
  void stop_job(const std::string& reason, Duration grace);

 private:
  // The error says why the request cannot be granted.
  [[nodiscard]] Status ask(const wire::StopJob& m);
  [[nodiscard]] Status ask(const wire::EvictWorkers& m);
  [[nodiscard]] Status ask(const wire::InjectRules& m);
  [[nodiscard]] Status ask(const wire::ResizeJob& m);
  [[nodiscard]] Status ask(const wire::ApproveAction& m);
  [[nodiscard]] Status ask(const wire::SkipRecords& m);
  [[nodiscard]] Status obey(const wire::AdminOrder& order);

  Shell& shell_;
};

}  // namespace antdt::jobd
