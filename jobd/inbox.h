// Messages of workers, operators and agents, as inputs of the job: what comes over our own socket
// directly, and what agents relay.
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
  // While the journal is waited for: the turn that is being committed may be in what others see, so
  // nothing is done but answering for the status.
  void answer_status_alone();

 private:
  void receive();
  void on_direct(const wire::Packet& packet);
  // A client that came by itself; one that an agent started speaks to its agent.
  void welcome(const wire::Packet& packet, const wire::Envelope& envelope);
  void on_worker_message(const wire::Envelope& envelope, std::string_view body, const Route& route);

  Shell& shell_;
  std::deque<wire::Packet> deferred_;  // came while the journal was waited for
};

}  // namespace antdt::jobd
