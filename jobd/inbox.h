// Turns messages of workers, operators and agents into inputs of the job: those that arrive on our
// own socket, and those that agents relay.
#pragma once

#include <deque>
#include <string>
#include <string_view>

#include "core/result.h"
#include "core/transport/socket.h"
#include "core/wire/packet.h"
#include "jobd/outbox.h"

namespace antdt::jobd {

struct Shell;

class Inbox {
 public:
  explicit Inbox(Shell& shell) : shell_(shell) {}

  // Binds jobd.sock.
  [[nodiscard]] Status listen(transport::Context& context);
  void on_agent_message(const std::string& endpoint, const wire::Envelope& envelope,
                        std::string_view body);
  // Used while a commit is waited for: the turn that is being committed may be visible in an
  // answer, so only requests for the status are answered. All else is handled in the next turn.
  void answer_status_alone();

 private:
  void receive();
  void on_direct(const wire::Packet& packet);
  // Welcomes a client that came by itself. A worker that an agent started speaks to its agent.
  void welcome(const wire::Packet& packet, const wire::Envelope& envelope);
  void on_worker_message(const wire::Envelope& envelope, std::string_view body, const Route& route);

  Shell& shell_;
  std::deque<wire::Packet> deferred_;  // arrived while a commit was waited for
};

}  // namespace antdt::jobd
