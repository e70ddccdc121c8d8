// Copies a checkpoint between two hosts, and compares that with the bulk rate of one CURVE link
// (docs/checkpoints-on-hosts.md). It uses a real agent with its file service, and the job daemon's
// code. The files are in memory (DIRECTORY should be a tmpfs), so that no disk is measured.
//
// Each round consists of:
//   link    messages of 1 MiB to a process that reads and drops them
//   push    a checkpoint of this host, until the other host has it under its name
//   fetch   the same checkpoint back, until this host has it
// The program prints the medians in MB/s, the least and the most, and the ratios of the medians. It
// also prints the processor time that both ends together take for a GB, which says more if other
// programs use the machine. The exit code is 1 if a ratio is below 0.8.
//
//   antdt-copies-bench [MEGABYTES, default 1024] [ROUNDS, default 7] [DIRECTORY, default /dev/shm]
//
// Both ends share this machine's cores, which one link can use up. To see what hosts with cores of
// their own would reach, measure on a slower link:
//
//   unshare -rn sh -c 'ip link set lo up; RUN antdt-copies-bench'
//   RUN: tc qdisc add dev lo root tbf rate 2gbit burst 4mb latency 50ms &&
#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "core/loop.h"
#include "core/os/fs.h"
#include "core/os/owned_fd.h"
#include "core/os/process.h"
#include "core/os/spawn.h"
#include "core/wire/agent_messages.h"
#include "core/wire/packet.h"
#include "jobd/disk/checkpoint_check.h"
#include "jobd/disk/checkpoint_transfer.h"

namespace {

using namespace antdt;
namespace fs = std::filesystem;

constexpr const char* kName = "s0000000001-l1-g1-w0.1";
constexpr const char* kJob = "copies-bench";
constexpr std::size_t kMessage = 1 << 20;
constexpr double kEnough = 0.8;

template <class T>
T must(Result<T> result) {
  if (result) return std::move(*result);
  fmt::print(stderr, "{}\n", result.error().message);
  std::exit(2);
}
void must(const Status& status) {
  if (status) return;
  fmt::print(stderr, "{}\n", status.error().message);
  std::exit(2);
}

// An end point that was free a moment ago.
std::string free_end_point() {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  const bool bound = ::bind(fd, generic, size) == 0 && ::getsockname(fd, generic, &size) == 0;
  ::close(fd);
  if (!bound) must(Status(fail(ErrorKind::kIo, "there is no free port")));
  return fmt::format("127.0.0.1:{}", ntohs(address.sin_port));
}

double seconds_since(MonoTime begin) { return to_seconds(SteadyClock().now() - begin); }

// User and system time of a process and of its children that it has waited for, and its parent.
struct Spent {
  pid_t parent = 0;
  double seconds = 0;
};
Spent spent_by(const std::string& pid) {
  const std::string stat = read_file("/proc/" + pid + "/stat").value_or("");
  const std::size_t name_end = stat.rfind(')');
  Spent spent;
  unsigned long long user = 0, system = 0;
  long long user_below = 0, system_below = 0;
  if (name_end == std::string::npos ||
      std::sscanf(stat.c_str() + name_end + 1,
                  " %*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %lld %lld", &spent.parent,
                  &user, &system, &user_below, &system_below) != 5) {
    return {};
  }
  const auto ticks = static_cast<double>(user + system) + static_cast<double>(user_below) +
                     static_cast<double>(system_below);
  spent.seconds = ticks / static_cast<double>(::sysconf(_SC_CLK_TCK));
  return spent;
}

// The processor time of this process and all its descendants.
double processor_seconds() {
  std::map<pid_t, Spent> all;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string pid = entry.path().filename();
    if (std::isdigit(static_cast<unsigned char>(pid[0])) != 0) all[std::stoi(pid)] = spent_by(pid);
  }
  double seconds = 0;
  for (const auto& [pid, spent] : all) {
    pid_t above = pid;
    while (above > 1 && above != ::getpid()) above = all[above].parent;
    if (above == ::getpid()) seconds += spent.seconds;
  }
  return seconds;
}

// A child that is ended with this program, or before.
class Child {
 public:
  explicit Child(pid_t pid) : pid_(pid) {}
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    ::kill(pid_, SIGTERM);
    ::waitpid(pid_, nullptr, 0);
  }

 private:
  pid_t pid_;
};

struct Setting {
  fs::path top;
  std::uint64_t bytes = 0;
  std::string agent;  // the program
  std::string agent_endpoint, sink_endpoint;
  transport::KeyPair job, server;
  [[nodiscard]] std::string here() const { return top / "here"; }
  [[nodiscard]] std::string there() const { return top / "there"; }
  [[nodiscard]] jobd::HostAddress address() const {
    return {agent_endpoint, job, server.public_z85};
  }
};

// Reads all messages, and answers the one that announces the end.
void take_all(const Setting& s) {
  const SteadyClock clock;
  EventLoop loop(clock);
  transport::Context context;
  must(context.serve_authentication(
      loop, transport::AuthorizedKeys((s.top / "keys/authorized").string())));
  auto socket = must(transport::Socket::bind_tcp(context, s.sink_endpoint, s.server));
  loop.watch_socket(socket, [&] {
    while (const auto packet = socket.receive()) {
      const auto envelope = wire::open_envelope(*packet);
      if (!envelope || envelope->kind != wire::Heartbeat::kKind) continue;
      wire::Packet reply = wire::make_packet(*envelope, wire::Done{});
      reply.peer = packet->peer;
      std::ignore = socket.send(reply);
    }
  });
  loop.run();
}

// Runs in a copy of this process, which has no other thread yet.
pid_t start_sink(const Setting& s) {
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  take_all(s);
  ::_exit(2);
}

pid_t start_agent(const Setting& s) {
  const std::string log = s.top / "agent.log";
  const OwnedFd out(::open(log.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  Spawn what;
  what.program = s.agent;
  what.arguments = {"--listen",     s.agent_endpoint,  "--keys",
                    s.top / "keys", "--state-dir",     s.top / "state",
                    "--socket-dir", s.top / "sockets", "--allow-root"};
  what.standard_output = out.get();
  what.standard_error = out.get();
  what.dies_with_us = true;
  return must(spawn(what)).pid;
}

void make_keys(Setting& s) {
  const std::string keys = s.top / "keys";
  s.job = must(transport::generate_key_pair(keys, "job"));
  s.server = must(transport::generate_key_pair(keys, "agent"));
  must(make_directories(keys + "/authorized", 0700));
  fs::copy_file(keys + "/job.pub", keys + "/authorized/job.pub");
}

// A complete checkpoint, as a writer and the job daemon leave it.
void make_checkpoint(const Setting& s) {
  const std::string directory = s.here() + "/checkpoints/" + kName;
  must(make_directories(directory, 0700));
  std::string content(kMessage, '\0');
  std::FILE* file = std::fopen((directory + "/model.f32").c_str(), "wb");
  for (std::uint64_t at = 0; file != nullptr && at < s.bytes; at += kMessage) {
    for (std::size_t i = 0; i < kMessage; i += 8) content[i] = static_cast<char>(at / kMessage + i);
    std::fwrite(content.data(), 1, kMessage, file);
  }
  if (file == nullptr || std::fclose(file) != 0) must(Status(fail(ErrorKind::kIo, "no room")));
  const auto sum = must(jobd::sum_file(directory, "model.f32"));
  const nlohmann::json manifest{
      {"schema", 1},
      {"lineage", 1},
      {"generation", 1},
      {"step", 1},
      {"writer", "w0"},
      {"attempt", 1},
      {"files", {{{"name", sum.name}, {"bytes", sum.bytes}, {"xxh3", sum.xxh3}}}}};
  must(write_file_atomic(directory + "/MANIFEST.json", manifest.dump()));
}

double link_once(const Setting& s, transport::Socket& socket) {
  const wire::Packet message =
      wire::make_packet({}, wire::FileWrite{"x", 0, std::string(kMessage, 'x')});
  const MonoTime begin = SteadyClock().now();
  for (std::uint64_t at = 0; at < s.bytes; at += kMessage) {
    while (socket.send(message) != transport::SendOutcome::kSent) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  wire::Envelope envelope;
  envelope.seq = 1;
  std::ignore = must(transport::request(socket, wire::make_packet(envelope, wire::Heartbeat{}),
                                        std::chrono::seconds(120)));
  return seconds_since(begin);
}

double push_once(const Setting& s, transport::Context& context) {
  const MonoTime begin = SteadyClock().now();
  auto host = must(jobd::HostFiles::open(context, s.address(), kJob, s.there(), {}));
  must(jobd::push_checkpoint(host, s.here(), kName, ".tmp-1-g1-w0.1"));
  return seconds_since(begin);
}

double fetch_once(const Setting& s, transport::Context& context) {
  const std::string back = s.top / "back";
  const MonoTime begin = SteadyClock().now();
  auto host = must(jobd::HostFiles::open(context, s.address(), kJob, s.there(), {}));
  must(jobd::fetch_checkpoint(host, back, kName));
  const double took = seconds_since(begin);
  fs::remove_all(back);
  fs::remove_all(s.there() + "/checkpoints/" + kName);
  return took;
}

struct Measured {
  std::vector<double> rates;      // MB/s
  std::vector<double> processor;  // seconds a GB
};

// The processor time of a service is known once it has ended and was waited for.
constexpr Duration kReaped = std::chrono::milliseconds(300);

template <class F>
void measure_one(const Setting& s, bool counts, Measured& measured, const F& once) {
  const double before = processor_seconds();
  const double took = once();
  std::this_thread::sleep_for(kReaped);
  const double used = processor_seconds() - before;
  if (!counts) return;
  measured.rates.push_back(static_cast<double>(s.bytes) / 1e6 / took);
  measured.processor.push_back(used * 1e9 / static_cast<double>(s.bytes));
}

double print(const char* what, Measured m) {
  std::ranges::sort(m.rates);
  std::ranges::sort(m.processor);
  const std::size_t middle = m.rates.size() / 2;
  fmt::print(
      "{:<6} {:7.0f} MB/s   ({:.0f} to {:.0f})   {:.2f} processor s a GB ({:.2f} to {:.2f})\n",
      what, m.rates[middle], m.rates.front(), m.rates.back(), m.processor[middle],
      m.processor.front(), m.processor.back());
  return m.rates[middle];
}

int measure(const Setting& s, int rounds) {
  transport::Context context;
  auto link =
      must(transport::Socket::connect_tcp(context, s.sink_endpoint, s.job, s.server.public_z85));
  std::array<Measured, 3> measured;
  for (int round = -1; round < rounds; ++round) {  // the first round warms up
    const bool counts = round >= 0;
    measure_one(s, counts, measured[0], [&] { return link_once(s, link); });
    measure_one(s, counts, measured[1], [&] { return push_once(s, context); });
    measure_one(s, counts, measured[2], [&] { return fetch_once(s, context); });
  }
  fmt::print("{} rounds of {:.0f} MB\n", rounds, static_cast<double>(s.bytes) / 1e6);
  const double by_link = print("link", measured[0]);
  const double push = print("push", measured[1]) / by_link;
  const double fetch = print("fetch", measured[2]) / by_link;
  fmt::print("push {:.2f} and fetch {:.2f} of what the link gives\n", push, fetch);
  return push >= kEnough && fetch >= kEnough ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  ignore_sigpipe();
  keep_freed_memory();
  Setting s;
  s.bytes = (argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1024) << 20;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 7;
  std::string top = std::string(argc > 3 ? argv[3] : "/dev/shm") + "/antdt-copies-XXXXXX";
  if (s.bytes == 0 || rounds < 1 || ::mkdtemp(top.data()) == nullptr) {
    fmt::print(stderr, "antdt-copies-bench [MEGABYTES] [ROUNDS] [DIRECTORY]\n");
    return 2;
  }
  s.top = top;
  s.agent = fs::read_symlink("/proc/self/exe").parent_path() / "antdtd";
  s.agent_endpoint = free_end_point();
  s.sink_endpoint = free_end_point();
  make_keys(s);
  make_checkpoint(s);
  int code = 2;
  {
    const Child sink(start_sink(s));
    const Child agent(start_agent(s));
    code = measure(s, rounds);
  }
  fs::remove_all(s.top);
  return code;
}
