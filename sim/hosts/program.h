// A process that an agent starts: how it lives, stands still and ends, whatever its work is.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "core/wire/servers/ps_messages.h"
#include "ctl/job/job_machine.h"
#include "sim/hosts/process.h"
#include "sim/servers/ps_packets.h"
#include "sim/world.h"
#include "trainer/client/client_core.h"
#include "trainer/worker/habits.h"

namespace antdt::sim {

struct Surroundings;

inline constexpr Duration kLookAgain = std::chrono::milliseconds(5);
inline constexpr Duration kEvalLookAgain = std::chrono::milliseconds(10);
inline constexpr Duration kStepTime = std::chrono::microseconds(200);  // on top of the time of the
                                                                       // step's records
inline constexpr std::uint64_t kEvalBatch = 8;

// A message from its agent.
struct Told {
  Generation generation;
  std::uint64_t seq = 0;
  std::variant<client::Inbound, wire::PsServe, wire::PsCut> body;
};
// A message to its agent.
struct Said {
  Generation generation;
  std::uint64_t seq = 0;
  std::variant<wire::Hello, wire::Report, ctl::job::WorkerBody> body;
};

class Program {
 public:
  // Which process of the job it is, and on which host it runs.
  struct Place {
    Member member;
    std::uint32_t pid = 0;
    std::string host;
    const HostClock& clock;
  };
  Program(World& world, const Surroundings& around, const Place& place)
      : world_(world),
        around_(around),
        member_(place.member),
        pid_(place.pid),
        host_(place.host),
        clock_(place.clock),
        process_(world) {}
  virtual ~Program() = default;
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  virtual void start() = 0;
  virtual void receive(Told message) = 0;
  virtual void terminate() = 0;  // SIGTERM
  // A packet on the sockets between workers and servers.
  virtual void asked(PsPacket /*packet*/) {}
  virtual void answered(PsAnswer /*answer*/) {}
  [[nodiscard]] virtual std::string doing() const = 0;
  // The address of its socket (address_of()); "": it has none.
  [[nodiscard]] const std::string& address() const { return address_; }

  void kill(int signal);
  void lose_power() { end(true); }  // power failure of its host: nobody is told
  void stop();                      // SIGSTOP
  void go_on();
  void suspend() { process_.freeze(); }  // with its machine
  void wake() { process_.thaw(); }
  void set_slowdown(double factor) { slowdown_ = factor; }
  // The process is killed after this many packets to workers or servers.
  void kill_after_sending(std::uint32_t packets) { packets_left_ = packets; }

  [[nodiscard]] Member member() const { return member_; }
  [[nodiscard]] const std::string& host() const { return host_; }
  [[nodiscard]] std::uint32_t pid() const { return pid_; }
  [[nodiscard]] bool alive() const { return alive_; }
  [[nodiscard]] bool stopped() const { return stopped_; }

 protected:
  void later(Duration delay, World::Action action) { process_.after(delay, std::move(action)); }
  void say(Said message);  // sends to its agent
  void exit(int code);
  void end(bool silently);
  void tell_end(int code, int signal);
  // The last message of the process, if it can send one, and what ends with it.
  virtual void last_words() {}
  virtual void ended(bool /*silently*/) {}
  // False if it dies before it sends this message, and all later ones.
  [[nodiscard]] bool may_send();
  [[nodiscard]] const char* standing() const { return process_.stands_still() ? " (stopped)" : ""; }

  World& world_;
  const Surroundings& around_;
  const Member member_;
  const std::uint32_t pid_;
  const std::string host_;
  const HostClock& clock_;
  Process process_;
  double slowdown_ = 1;
  std::string address_;

 private:
  bool alive_ = true;
  bool stopped_ = false;
  std::optional<std::uint32_t> packets_left_;
};

// A program with the real client core, whose message thread answers always, unless the whole
// process is stopped.
class ClientProgram : public Program {
 public:
  using Program::Program;
  void start() final;
  void receive(Told message) final;
  void terminate() final;

 protected:
  void feed(const client::Input& input);
  virtual void welcomed() = 0;  // called for the first welcome
  virtual void turn() = 0;      // called for the training thread, if it is idle
  virtual void abort(Generation generation) = 0;
  void last_words() override { feed(wire::Bye{}); }
  [[nodiscard]] bool wants_to_leave() const {
    return sigterm_ || core_.orders().leave_requested().has_value();
  }
  // How long an operation of `time` takes on this host with its slowdown.
  [[nodiscard]] Duration slowed(Duration time) const {
    return std::chrono::duration_cast<Duration>(time * slowdown_);
  }

  client::ClientCore core_;
  bool sigterm_ = false;

 private:
  void perform(client::Effects effects);
  void arm();

  bool greeted_ = false;
  std::optional<MonoTime> armed_;
};

}  // namespace antdt::sim
