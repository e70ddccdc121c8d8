// The network between the machines: what is lost, late, twice or in another order, and who does not
// reach whom. Datagrams go between the job daemon and agents; between workers and servers there are
// sockets, which keep the order of what they carry.
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

  // `faults` are those that may come now.
  Network(World& world, const Faults& faults, Hosts& hosts)
      : world_(world), faults_(faults), hosts_(hosts) {}

  [[nodiscard]] bool reaches(const std::string& a, const std::string& b) const;
  [[nodiscard]] bool whole() const { return cuts_.empty(); }
  void cut(const std::string& a, const std::string& b, Duration how_long);
  void mend() { cuts_.clear(); }

  // Between the job daemon and the agent of `host`, over `link`, one for each direction.
  void send(const std::string& link, const std::string& host, World::Action deliver,
            const std::string& what);

  [[nodiscard]] std::uint64_t new_socket(Member of);
  // To the server at an end point; the answer goes back to the packet's socket.
  void ask(const Program& from, const std::string& endpoint, PsPacket packet);
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
  std::vector<Member> sockets_;                                 // whose each is
  std::set<std::pair<std::string, std::string>> cuts_;
};

}  // namespace antdt::sim
