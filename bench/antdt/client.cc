#include "bench/antdt/client.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/transport/ipc_dealer.h"
#include "core/wire/membership_messages.h"
#include "core/wire/packet.h"
#include "core/wire/shard_messages.h"
#include "core/wire/training_messages.h"
#include "core/wire/worker_messages.h"
#include "trainer/client/environment.h"

namespace antdt::bench {
namespace {

constexpr Duration kDeadline = std::chrono::seconds(20);

// Waits for a message of kind T; others are dropped.
template <class T>
Result<T> await(transport::IpcDealer& socket) {
  while (socket.wait_readable(kDeadline)) {
    const auto packet = socket.receive();
    if (!packet) continue;
    ANTDT_TRY(const wire::Envelope envelope, wire::open_envelope(*packet));
    if (envelope.kind == T::kKind) return wire::decode<T>(packet->body);
    if (envelope.kind == wire::Refused::kKind) return wire::open_reply<T>(*packet);
  }
  return fail(ErrorKind::kUnreachable, "no '{}' came from {}", T::kKind, socket.endpoint());
}

}  // namespace

Result<ClientResult> run_client(const ClientOptions& options) {
  ANTDT_TRY(const client::Environment self, client::Environment::from_process());
  ANTDT_TRY(auto socket, transport::IpcDealer::connect(self.socket));
  wire::Envelope envelope;
  envelope.job = self.job;
  envelope.worker = self.self.worker;
  envelope.attempt = self.self.attempt;
  const auto send = [&](const auto& message) {
    return socket.send(wire::make_packet(envelope, message)) == transport::SendOutcome::kSent;
  };
  send(wire::Hello{wire::kMinVersion, wire::kMaxVersion, "antdt bench"});
  ANTDT_RETURN_IF_ERROR(await<wire::WorkerWelcome>(socket));
  wire::Join join;
  join.collective = false;
  send(join);
  ANTDT_TRY(const wire::PhaseStart phase, await<wire::PhaseStart>(socket));

  const MonoTime start{Duration(options.start_ns)};
  const MonoTime end = start + from_seconds(options.seconds);
  ClientResult result;
  wire::Fetch fetch;
  fetch.phase = phase.phase;
  fetch.want = options.batch * options.shard_records;
  for (MonoTime asked = SteadyClock().now(); asked < end;) {
    ++envelope.seq;
    send(fetch);
    ANTDT_TRY(const wire::Grants grants, await<wire::Grants>(socket));
    if (grants.status != wire::GrantStatus::kGranted) {
      return fail(ErrorKind::kInternal, "the shard service answered '{}'", grants.status);
    }
    for (const wire::Piece& piece : grants.pieces) fetch.place += piece.to - piece.from;
    const MonoTime answered = SteadyClock().now();
    if (asked >= start && answered < end) {
      ++result.pairs;
      result.shards += grants.pieces.size();
      result.latency_us.push_back(static_cast<std::uint32_t>((answered - asked).count() / 1000));
    }
    asked = answered;
  }
  send(wire::Bye{});
  return result;
}

std::string to_line(const ClientResult& result) {
  return nlohmann::json{
      {"pairs", result.pairs}, {"shards", result.shards}, {"latency_us", result.latency_us}}
      .dump();
}

Result<ClientResult> from_line(const std::string& text) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object() || !json.contains("latency_us")) {
    return fail(ErrorKind::kInternal, "a client of the bench ended without a result: '{}'", text);
  }
  return ClientResult{json.value("pairs", std::uint64_t{0}), json.value("shards", std::uint64_t{0}),
                      json["latency_us"].get<std::vector<std::uint32_t>>()};
}

}  // namespace antdt::bench
