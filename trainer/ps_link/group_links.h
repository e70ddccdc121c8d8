// How the processes of a group connect to its servers, and how they are identified: over ipc on one
// machine; over tcp, authenticated and encrypted, if there are several.
//
// Each process makes a key pair for itself and sends the job daemon the public key with its join. A
// server admits the keys that the newest PsServe names, each as the process to which it belongs; a
// message over a link in another process's name is refused.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/ids.h"
#include "core/result.h"
#include "core/transport/socket.h"
#include "core/wire/packet.h"
#include "core/wire/servers/ps_messages.h"

namespace antdt::ps {

// "10.0.0.1:29400" for "tcp://10.0.0.1:29400"; empty for the path of an ipc socket.
[[nodiscard]] std::string tcp_address(const std::string& endpoint);

// `server_key` and `own` are for tcp. Connecting does not fail if the server is not there
// (socket.h).
[[nodiscard]] Result<transport::Socket> connect_to_server(transport::Context& context,
                                                          const std::string& endpoint,
                                                          const std::string& server_key,
                                                          const transport::KeyPair& own);

// Whether messages of the authenticated `user` may speak for this member. Over ipc there is no such
// user: only the job's user can open the socket.
[[nodiscard]] bool may_speak(const std::string& user, const wire::Envelope& envelope);

// The processes that a server admits.
class AdmittedKeys {
 public:
  // From now on admits the processes that `serve` names and no others.
  void admit(const wire::PsServe& serve);
  // A transport::NameOfKey.
  [[nodiscard]] std::string name_of(const std::string& key) const;

 private:
  std::map<std::string, std::string> names_;
};

}  // namespace antdt::ps
