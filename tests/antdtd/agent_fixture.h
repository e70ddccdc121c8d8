// A real agent, with a test in the places of its job daemon and of its workers.
#pragma once

#include <gtest/gtest.h>
#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "antdtd/shim/process_key.h"
#include "core/os/fs.h"
#include "core/transport/socket.h"
#include "core/wire/agent_messages.h"
#include "core/wire/packet.h"

namespace antdt::antdtd {

inline constexpr Duration kPatience = std::chrono::seconds(30);

// Checks repeatedly until `condition` holds. Returns false if that takes too long.
[[nodiscard]] bool await(const std::function<bool()>& condition, Duration patience = kPatience);

// The live processes whose environment names this job.
[[nodiscard]] std::vector<pid_t> processes_of(const std::string& job);

// A cgroup (version 2) of the test's own, which the test removes; "" if none can be made. The
// variable ANTDT_TEST_CGROUP may name the directory in which it is made.
[[nodiscard]] std::string make_test_cgroup();

// One side of a conversation; fills in the job and the worker of its envelopes.
class Peer {
 public:
  Peer(transport::Context& context, const std::string& socket, ProcessKey key);
  Peer(transport::Socket socket, ProcessKey key)
      : socket_(std::move(socket)), key_(std::move(key)) {}

  template <class T>
  void send(const T& message, std::optional<ProcessKey> about = std::nullopt,
            std::uint64_t seq = 0) {
    send_packet(wire::make_packet(envelope(about.value_or(key_), seq), message));
  }
  // The next message of T's kind; others that arrive before it are dropped. If none comes, the test
  // fails and T{} is returned.
  template <class T>
  T await_message(wire::Envelope* envelope = nullptr) {
    const auto packet = await_kind(std::string(T::kKind), envelope);
    if (!packet) return T{};
    return wire::decode<T>(packet->body).value_or(T{});
  }
  [[nodiscard]] std::optional<wire::Packet> await_kind(const std::string& kind,
                                                       wire::Envelope* envelope);
  void send_packet(const wire::Packet& packet);
  [[nodiscard]] transport::Socket& socket() { return socket_; }
  [[nodiscard]] const ProcessKey& key() const { return key_; }

 private:
  [[nodiscard]] wire::Envelope envelope(const ProcessKey& about, std::uint64_t seq) const;
  transport::Socket socket_;
  ProcessKey key_;
};

class AgentTest : public ::testing::Test {
 protected:
  AgentTest();
  ~AgentTest() override;

  // Starts a private agent on the test's directories.
  void start_agent(const std::vector<std::string>& more_flags = {});
  // The same, with an agent that its processes start again.
  void start_kept_agent(const std::vector<std::string>& more_flags = {});
  void kill_agent();                       // SIGKILL, reaped
  [[nodiscard]] int wait_for_agent_end();  // its wait status
  [[nodiscard]] bool agent_ended();

  // Sends hello and attaches; returns once it is welcomed.
  [[nodiscard]] Peer attach(std::uint64_t incarnation = 1);
  [[nodiscard]] Peer worker(std::uint32_t index, std::uint32_t attempt = 1);
  [[nodiscard]] ProcessKey key(std::uint32_t index, std::uint32_t attempt = 1) const;
  // Starts `sh -c script` as a worker; returns its pid.
  std::uint32_t start(Peer& daemon, std::uint32_t index, const std::string& script,
                      std::uint32_t attempt = 1);
  [[nodiscard]] wire::StartProcess request(const std::string& script) const;

  [[nodiscard]] std::string path(const std::string& name) const { return dir_ / name; }
  [[nodiscard]] std::string log_of(const std::string& name) const;

  TempDir dir_;
  transport::Context context_;
  std::string job_;
  pid_t agent_ = 0;
  std::optional<int> agent_status_;
};

}  // namespace antdt::antdtd
