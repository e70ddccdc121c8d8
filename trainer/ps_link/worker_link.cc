#include "trainer/ps_link/worker_link.h"

#include <algorithm>
#include <cstring>

#include "trainer/ps/rows.h"

namespace antdt::ps {
namespace {

constexpr Duration kAgain = std::chrono::seconds(2);
constexpr Duration kGiveUp = std::chrono::seconds(60);

}  // namespace

Result<WorkerLink> WorkerLink::connect(transport::Context& context, Group group, Member self) {
  WorkerLink link(std::move(group), self);
  for (const std::string& path : link.group_.sockets) {
    ANTDT_TRY(auto socket, transport::Socket::connect_ipc(context, path));
    link.links_.push_back(std::move(socket));
  }
  return link;
}

wire::Envelope WorkerLink::next_envelope() {
  wire::Envelope envelope;
  envelope.worker = self_.worker;
  envelope.attempt = self_.attempt;
  envelope.generation = group_.generation;
  envelope.seq = ++seq_;
  return envelope;
}

WorkerLink::Split WorkerLink::split(std::span<const std::uint64_t> keys) const {
  Split parts(links_.size());
  for (auto& part : parts) part.reserve(keys.size() / links_.size() + 16);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    parts[group_.server_of_slice(slice_of(keys[i]))].push_back(i);
  }
  return parts;
}

template <class Reply, class Ask>
Result<std::vector<Reply>> WorkerLink::ask_all(const std::vector<Ask>& messages) {
  std::vector<std::uint64_t> asked;
  std::vector<wire::Packet> packets;
  for (std::size_t s = 0; s < links_.size(); ++s) {
    packets.push_back(wire::make_packet(next_envelope(), messages[s]));
    asked.push_back(seq_);
    std::ignore = links_[s].send(packets.back());
  }
  std::vector<Reply> replies;
  const MonoTime deadline = SteadyClock().now() + kGiveUp;
  for (std::size_t s = 0; s < links_.size(); ++s) {
    MonoTime again = SteadyClock().now() + kAgain;
    while (replies.size() <= s) {
      const MonoTime now = SteadyClock().now();
      if (now >= deadline) {
        return fail(ErrorKind::kUnreachable, "parameter server s{} at {} has not answered '{}'", s,
                    links_[s].endpoint(), Ask::kKind);
      }
      if (!links_[s].wait_readable(std::min(again, deadline) - now)) {
        std::ignore = links_[s].send(packets[s]);
        again = SteadyClock().now() + kAgain;
        continue;
      }
      const auto packet = links_[s].receive();
      if (!packet) continue;
      const auto envelope = wire::open_envelope(*packet);
      if (!envelope || envelope->seq != asked[s]) continue;  // of an earlier request
      ANTDT_TRY(replies.emplace_back(), wire::open_reply<Reply>(*packet));
    }
  }
  return replies;
}

Status WorkerLink::open(const wire::PsOpen& tables) {
  ANTDT_TRY(const auto opened, ask_all<wire::PsOpened>(std::vector(links_.size(), tables)));
  std::ignore = opened;
  return {};
}

Status WorkerLink::idle() {
  ANTDT_TRY(const auto heard, ask_all<wire::Done>(std::vector(links_.size(), wire::PsIdle{})));
  std::ignore = heard;
  return {};
}

Result<WorkerLink::Pulled> WorkerLink::pull(std::uint32_t table,
                                            std::span<const std::uint64_t> keys,
                                            std::uint64_t clock) {
  const Split parts = split(keys);
  std::vector<wire::PsPull> pulls;
  for (const auto& part : parts) {
    std::vector<std::uint64_t> own(part.size());
    std::ranges::transform(part, own.begin(), [&](std::size_t i) { return keys[i]; });
    pulls.push_back({clock, {{table, to_bytes(own), {}}}});
  }
  ANTDT_TRY(const auto replies, ask_all<wire::PsPulled>(pulls));
  Pulled pulled;
  for (std::size_t s = 0; s < parts.size(); ++s) {
    const std::string& bytes = replies[s].values.empty() ? std::string() : replies[s].values[0];
    const std::size_t row = parts[s].empty() ? 0 : bytes.size() / parts[s].size();
    if (row * parts[s].size() != bytes.size() || row % sizeof(float) != 0) {
      return fail(ErrorKind::kCorrupt, "parameter server s{} sent {} bytes for {} rows", s,
                  bytes.size(), parts[s].size());
    }
    if (pulled.values.empty()) pulled.values.resize(keys.size() * row / sizeof(float));
    if (row * keys.size() != pulled.values.size() * sizeof(float) && !parts[s].empty()) {
      return fail(ErrorKind::kCorrupt, "parameter servers differ in the width of table {}", table);
    }
    auto* out = reinterpret_cast<char*>(pulled.values.data());
    for (std::size_t i = 0; i < parts[s].size(); ++i) {
      std::memcpy(out + parts[s][i] * row, bytes.data() + i * row, row);
    }
    pulled.versions.push_back(replies[s].version);
    pulled.clock = s == 0 ? replies[s].clock : std::min(pulled.clock, replies[s].clock);
  }
  return pulled;
}

Result<wire::PsDecided> WorkerLink::push(std::uint32_t table, const Gradient& gradient,
                                         const Pulled& pulled, wire::PsCommit commit) {
  const std::size_t width =
      gradient.keys.empty() ? 0 : gradient.values.size() / gradient.keys.size();
  const Split parts = split(gradient.keys);
  std::vector<wire::PsPush> pushes;
  for (std::size_t s = 0; s < parts.size(); ++s) {
    std::vector<std::uint64_t> keys;
    std::vector<float> values;
    keys.reserve(parts[s].size());
    values.reserve(parts[s].size() * width);
    for (const std::size_t i : parts[s]) {
      keys.push_back(gradient.keys[i]);
      const auto row = gradient.values.begin() + static_cast<std::ptrdiff_t>(i * width);
      values.insert(values.end(), row, row + static_cast<std::ptrdiff_t>(width));
    }
    const std::uint64_t version =
        group_.consistency == Consistency::kBarrier ? commit.version : pulled.versions.at(s);
    pushes.push_back({commit.number, version, {{table, to_bytes(keys), to_bytes(values)}}});
  }
  ANTDT_TRY(const auto staged, ask_all<wire::PsStaged>(pushes));
  std::ignore = staged;  // one that is late is late at the home as well
  return ask<wire::PsDecided>(group_.home_of(self_), commit);
}

template <class Reply, class Ask>
Result<Reply> WorkerLink::ask(std::uint32_t server, const Ask& message) {
  const wire::Packet packet = wire::make_packet(next_envelope(), message);
  const MonoTime deadline = SteadyClock().now() + kGiveUp;
  while (SteadyClock().now() < deadline) {
    const auto reply = transport::request(links_[server], packet, kAgain);
    if (reply) return wire::open_reply<Reply>(*reply);
  }
  return fail(ErrorKind::kUnreachable, "parameter server s{} at {} has not answered '{}'", server,
              links_[server].endpoint(), Ask::kKind);
}

}  // namespace antdt::ps
