// The network between the machines: which packets are lost, late, duplicated or reordered, and who
// cannot reach whom. Datagrams go between the job daemon and agents; workers and servers use
// sockets, which keep the order of their packets.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/ids.h"
#include "sim/options.h"
#include "sim/servers/ps_packets.h"
#include "sim/world.h"

namespace antdt::sim {

class Hosts;
class Program;

class Network {
 public:
  // The name of the job daemon's machine.
  static constexpr const char* kDaemon = "daemon";

  // `faults` are the faults that may happen now.
  Network(World& world, const Faults& faults, Hosts& hosts)
      : world_(world), faults_(faults), hosts_(hosts) {}

  [[nodiscard]] bool reaches(const std::string& a, const std::string& b) const;
  [[nodiscard]] bool whole() const { return cuts_.empty(); }
  void cut(const std::string& a, const std::string& b, Duration how_long);
  void mend() { cuts_.clear(); }

  // Sends between the job daemon and the agent of `host` over `link`; each direction has a link.
  void send(const std::string& link, const std::string& host, World::Action deliver,
            const std::string& what);

  [[nodiscard]] std::uint64_t new_socket(Member of);
  // Sends to the server at an end point; the answer returns to the packet's socket.
  void ask(const Program& from, const std::string& address, PsPacket packet);
  void answer(const Program& from, PsAnswer answer);

 private:
  using Deliver = std::function<void(Program&)>;
  void carry(const Program& from, const std::shared_ptr<Program>& to, const std::string& what,
             Deliver deliver);

  World& world_;
  const Faults& faults_;
  Hosts& hosts_;
  std::map<std::string, MonoTime> last_delivery_;               // by link
  std::map<std::pair<Member, Member>, MonoTime> last_carried_;  // from, to
  std::vector<Member> sockets_;                                 // the owner of each socket
  std::set<std::pair<std::string, std::string>> cuts_;
};

}  // namespace antdt::sim
