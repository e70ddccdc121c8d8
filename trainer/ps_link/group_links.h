// How the processes of a group reach its servers, and as whom: over ipc on one machine,
// over tcp, authenticated and encrypted, where there are several.
//
// Each process makes a key pair for itself and tells the job daemon the public key with
// its join. A server lets in the keys that the newest PsServe names, as those whose they
// are; nothing is said over a link in another's name.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/ids.h"
#include "core/result.h"
#include "core/transport/socket.h"
#include "core/wire/packet.h"
#include "core/wire/ps_messages.h"

namespace antdt::ps {

// "10.0.0.1:29400" of "tcp://10.0.0.1:29400"; empty for the path of an ipc socket.
[[nodiscard]] std::string tcp_address(const std::string& endpoint);

// `server_key` and `own` are for tcp. Connecting never fails at once (socket.h).
[[nodiscard]] Result<transport::Socket> connect_to_server(transport::Context& context,
                                                          const std::string& endpoint,
                                                          const std::string& server_key,
                                                          const transport::KeyPair& own);

// Whether what came from the authenticated `user` may speak for this member. Over ipc
// there is none: whoever can open the socket is the user that the job runs as.
[[nodiscard]] bool may_speak(const std::string& user, const wire::Envelope& envelope);

// Whom a server lets in.
class AdmittedKeys {
 public:
  // Those that it names and nobody else from now on.
  void admit(const wire::PsServe& serve);
  // As transport::NameOfKey.
  [[nodiscard]] std::string name_of(const std::string& key) const;

 private:
  std::map<std::string, std::string> names_;
};

}  // namespace antdt::ps
