#include "trainer/ps_link/worker_link.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "trainer/ps/rows.h"
#include "trainer/ps_link/placement.h"

namespace antdt::ps {
namespace {

tl::unexpected<Error> over(Generation generation) {
  return fail(ErrorKind::kAborted, "the group of parameter servers of generation {} is over",
              generation);
}

// A peer that says so knows that the group is over, whatever else was heard.
template <class Reply>
Result<Reply> open_reply_of_group(const wire::Packet& packet, const wire::Envelope& envelope) {
  if (envelope.kind == wire::Refused::kKind) {
    ANTDT_TRY(const auto refused, wire::decode<wire::Refused>(packet.body));
    const bool stale = refused.code == "stale";
    return fail(stale ? ErrorKind::kAborted : ErrorKind::kRefused, "{}", refused.reason);
  }
  return wire::open_reply<Reply>(packet);
}

}  // namespace

Result<std::unique_ptr<WorkerLink>> WorkerLink::connect(transport::Context& context, Peers peers,
                                                        Member self) {
  if (peers.servers.empty()) return fail(ErrorKind::kUsage, "a group without parameter servers");
  const int wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake_fd < 0) return fail_errno(ErrorKind::kIo, errno, "cannot make an eventfd");
  std::unique_ptr<WorkerLink> link(new WorkerLink(std::move(peers), self, wake_fd));
  for (const std::string& path : link->peers_.servers) {
    ANTDT_TRY(auto socket, transport::Socket::connect_ipc(context, path));
    link->links_.push_back(std::move(socket));
  }
  return link;
}

WorkerLink::WorkerLink(Peers peers, Member self, int wake_fd)
    : peers_(std::move(peers)), self_(self), wake_fd_(wake_fd) {}

WorkerLink::~WorkerLink() { ::close(wake_fd_); }

void WorkerLink::abort() {
  aborted_ = true;
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_fd_, &one, sizeof one);
}

// -------------------------------------------------------------------- requests

wire::Envelope WorkerLink::next_envelope() {
  wire::Envelope envelope;
  envelope.worker = self_.worker;
  envelope.attempt = self_.attempt;
  envelope.generation = peers_.generation;
  envelope.seq = ++seq_;
  return envelope;
}

template <class Ask>
WorkerLink::Asked WorkerLink::say(std::uint32_t server, const Ask& message) {
  Asked asked{server, 0, wire::make_packet(next_envelope(), message)};
  asked.seq = seq_;
  // Without room it is said again, as if it had been lost.
  std::ignore = links_[server].send(asked.packet);
  return asked;
}

template <class Reply>
Result<Reply> WorkerLink::answer(const Asked& asked) {
  transport::Socket& link = links_[asked.server];
  const SteadyClock clock;
  const MonoTime begun = clock.now();
  MonoTime again = begun + peers_.again;
  while (!aborted_) {
    if (link.wait_readable(again - clock.now(), wake_fd_)) {
      const auto packet = link.receive();
      if (!packet) continue;
      const auto envelope = wire::open_envelope(*packet);
      if (!envelope || envelope->seq != asked.seq) continue;  // of an earlier request
      return open_reply_of_group<Reply>(*packet, *envelope);
    }
    const MonoTime now = clock.now();
    if (peers_.give_up > Duration::zero() && now >= begun + peers_.give_up) {
      return fail(ErrorKind::kUnreachable, "parameter server s{} at {} has not answered for {} s",
                  asked.server, link.endpoint(), to_seconds(peers_.give_up));
    }
    if (now < again) continue;
    std::ignore = link.send(asked.packet);
    again = now + peers_.again;
  }
  return over(peers_.generation);
}

template <class Reply, class Ask>
Result<std::vector<Reply>> WorkerLink::ask_all(const std::vector<Ask>& messages) {
  if (aborted_) return over(peers_.generation);
  std::vector<Asked> asked;
  for (std::uint32_t s = 0; s < links_.size(); ++s) asked.push_back(say(s, messages[s]));
  std::vector<Reply> replies;
  for (const Asked& one : asked) {
    ANTDT_TRY(replies.emplace_back(), answer<Reply>(one));
  }
  return replies;
}

Result<std::uint64_t> WorkerLink::open(const wire::PsOpen& tables) {
  widths_.clear();
  for (const wire::PsTable& table : tables.tables) widths_.push_back(table.width);
  ANTDT_TRY(const auto opened, ask_all<wire::PsOpened>(std::vector(links_.size(), tables)));
  return std::ranges::max(opened, {}, &wire::PsOpened::version).version;
}

Result<std::uint64_t> WorkerLink::idle() {
  ANTDT_TRY(const auto idled, ask_all<wire::PsIdled>(std::vector(links_.size(), wire::PsIdle{})));
  std::uint64_t decided = 0;
  for (const wire::PsIdled& one : idled) decided += one.decided;
  return decided;
}

Result<std::uint64_t> WorkerLink::settle() {
  ANTDT_TRY(const std::uint64_t decided, idle());
  ANTDT_RETURN_IF_ERROR(ask_all<wire::PsIdled>(std::vector(links_.size(), wire::PsIdle{decided})));
  return decided;
}

// ------------------------------------------------------------------------ rows

WorkerLink::Split WorkerLink::split(const std::vector<std::uint64_t>& keys) const {
  Split parts(links_.size());
  for (auto& part : parts) part.reserve(keys.size() / links_.size() + 16);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    parts[server_of_slice(slice_of(keys[i]), links_.size())].push_back(i);
  }
  return parts;
}

Result<std::uint32_t> WorkerLink::width_of(std::uint32_t table) const {
  if (table < widths_.size()) return widths_[table];
  return fail(ErrorKind::kUsage, "table {} of {} that are open", table, widths_.size());
}

Result<std::vector<std::vector<wire::PsRows>>> WorkerLink::shares_of(
    const std::vector<TableGradient>& tables) const {
  std::vector<std::vector<wire::PsRows>> shares(links_.size());
  for (const auto& [table, gradient] : tables) {
    ANTDT_TRY(const std::uint32_t width, width_of(table));
    if (gradient.values.size() != gradient.keys.size() * width) {
      return fail(ErrorKind::kUsage, "{} floats for {} rows of table {}, of {} floats each",
                  gradient.values.size(), gradient.keys.size(), table, width);
    }
    const Split parts = split(gradient.keys);
    for (std::size_t s = 0; s < parts.size(); ++s) {
      std::vector<std::uint64_t> keys;
      std::vector<float> values;
      keys.reserve(parts[s].size());
      values.reserve(parts[s].size() * width);
      for (const std::size_t i : parts[s]) {
        keys.push_back(gradient.keys[i]);
        const auto row = gradient.values.begin() + static_cast<std::ptrdiff_t>(i * width);
        values.insert(values.end(), row, row + width);
      }
      shares[s].push_back({table, to_bytes(keys), to_bytes(values)});
    }
  }
  return shares;
}

Status WorkerLink::put(const std::vector<TableGradient>& values) {
  ANTDT_TRY(auto shares, shares_of(values));
  std::vector<wire::PsPut> puts;
  for (auto& rows : shares) puts.push_back({std::move(rows)});
  ANTDT_RETURN_IF_ERROR(ask_all<wire::Done>(puts));
  return {};
}

// The rows of the table at `at` of what was asked, from each server's answer.
Status WorkerLink::take(const TableKeys& keys, const Split& parts, std::size_t at,
                        const std::vector<wire::PsPulled>& replies,
                        std::vector<float>& values) const {
  ANTDT_TRY(const std::uint32_t width, width_of(keys.table));
  const std::size_t row = width * sizeof(float);
  values.resize(keys.keys.size() * width);
  auto* out = reinterpret_cast<char*>(values.data());
  for (std::size_t s = 0; s < parts.size(); ++s) {
    const bool there = at < replies[s].values.size();
    if (!there || replies[s].values[at].size() != parts[s].size() * row) {
      return fail(ErrorKind::kCorrupt,
                  "parameter server s{} sent {} bytes for {} rows of table {}, of {} floats each",
                  s, there ? replies[s].values[at].size() : 0, parts[s].size(), keys.table, width);
    }
    const char* in = replies[s].values[at].data();
    for (std::size_t i = 0; i < parts[s].size(); ++i) {
      std::memcpy(out + parts[s][i] * row, in + i * row, row);
    }
  }
  return {};
}

Result<WorkerLink::Pulled> WorkerLink::pull(const std::vector<TableKeys>& keys,
                                            std::uint64_t clock) {
  std::vector<wire::PsPull> pulls(links_.size(), wire::PsPull{clock, {}});
  std::vector<Split> parts;
  for (const TableKeys& table : keys) {
    parts.push_back(split(table.keys));
    for (std::size_t s = 0; s < links_.size(); ++s) {
      std::vector<std::uint64_t> own(parts.back()[s].size());
      std::ranges::transform(parts.back()[s], own.begin(),
                             [&](std::size_t i) { return table.keys[i]; });
      pulls[s].rows.push_back({table.table, to_bytes(own), {}});
    }
  }
  ANTDT_TRY(const auto replies, ask_all<wire::PsPulled>(pulls));
  Pulled pulled;
  pulled.values.resize(keys.size());
  for (std::size_t t = 0; t < keys.size(); ++t) {
    ANTDT_RETURN_IF_ERROR(take(keys[t], parts[t], t, replies, pulled.values[t]));
  }
  for (const wire::PsPulled& reply : replies) pulled.versions.push_back(reply.version);
  pulled.clock = std::ranges::min(replies, {}, &wire::PsPulled::clock).clock;
  return pulled;
}

Result<wire::PsDecided> WorkerLink::push(const std::vector<TableGradient>& gradients,
                                         const Pulled& pulled, wire::PsCommit commit) {
  const bool barrier = peers_.consistency == Consistency::kBarrier;
  if (!barrier && pulled.versions.size() != links_.size()) {
    return fail(ErrorKind::kUsage, "a push of what was not pulled from here");
  }
  ANTDT_TRY(auto shares, shares_of(gradients));
  std::vector<wire::PsPush> pushes;
  for (std::size_t s = 0; s < shares.size(); ++s) {
    const std::uint64_t version = barrier ? commit.version : pulled.versions[s];
    pushes.push_back({commit.number, version, std::move(shares[s])});
  }
  // One that is late at a server is late at the home as well.
  ANTDT_RETURN_IF_ERROR(ask_all<wire::PsStaged>(pushes));
  const std::uint32_t home = home_of(peers_.consistency, self_.worker, links_.size());
  if (!barrier) commit.version = pulled.versions[home];
  return answer<wire::PsDecided>(say(home, commit));
}

}  // namespace antdt::ps
