// Requests of operators: on the job's own socket, or through an agent, which has checked who they
// are.
#pragma once

#include <string>
#include <string_view>

#include "core/clock.h"
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

  // Answers a request on the job's own socket.
  void answer(const wire::Packet& packet, const wire::Envelope& envelope);
  // The same for a request that came through the agent `endpoint`.
  void answer_relayed(const std::string& endpoint, const wire::Envelope& envelope,
                      std::string_view body);
  [[nodiscard]] wire::StatusReply status_for(const wire::StatusRequest& request) const;
  // Stops the job in good order.
  void stop_job(const std::string& reason, Duration grace);

 private:
  // Carries out the request, and calls reply() with the message that answers it. `who`: the user
  // as the agent knows them, or "" on the job's own socket, where the request itself names the
  // user.
  template <class Reply>
  void serve(std::string_view kind, std::string_view body, const std::string& who, Reply reply);
  // The error says why the request cannot be granted.
  [[nodiscard]] Status ask(const wire::StopJob& m);
  [[nodiscard]] Status ask(const wire::EvictWorkers& m);
  [[nodiscard]] Status ask(const wire::HostGone& m);
  [[nodiscard]] Status ask(const wire::InjectRules& m);
  [[nodiscard]] Status ask(const wire::ResizeJob& m);
  [[nodiscard]] Status ask(const wire::ApproveAction& m);
  [[nodiscard]] Status ask(const wire::SkipRecords& m);

  Shell& shell_;
};

}  // namespace antdt::jobd
