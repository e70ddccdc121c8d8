#include "bench/antdt/echo.h"

#include "core/wire/membership_messages.h"
#include "core/wire/packet.h"
#include "core/wire/shard_messages.h"
#include "core/wire/training_messages.h"
#include "core/wire/worker_messages.h"

namespace antdt::bench {
namespace {

wire::Packet answer(const wire::Envelope& asked) {
  if (asked.kind == wire::Hello::kKind) return wire::make_packet(asked, wire::WorkerWelcome{});
  if (asked.kind == wire::Join::kKind) {
    wire::PhaseStart start;
    start.phase = 1;
    return wire::make_packet(asked, start);
  }
  wire::Grants grants;
  grants.status = wire::GrantStatus::kGranted;
  grants.pieces.emplace_back();
  grants.pieces.back().to = 1;
  return wire::make_packet(asked, grants);
}

}  // namespace

Result<std::unique_ptr<EchoServer>> EchoServer::start(transport::Context& context,
                                                      const std::string& path) {
  ANTDT_TRY(auto socket, transport::Socket::bind_ipc(context, path));
  std::unique_ptr<EchoServer> server(new EchoServer(std::move(socket)));
  server->thread_ = std::thread([s = server.get()] { s->serve(); });
  return server;
}

EchoServer::EchoServer(transport::Socket socket) : socket_(std::move(socket)) {}

EchoServer::~EchoServer() {
  stop_ = true;
  if (thread_.joinable()) thread_.join();
}

void EchoServer::serve() {
  while (!stop_) {
    if (!socket_.wait_readable(std::chrono::milliseconds(100))) continue;
    while (const auto packet = socket_.receive()) {
      const auto envelope = wire::open_envelope(*packet);
      if (!envelope) continue;
      wire::Packet reply = answer(*envelope);
      reply.peer = packet->peer;
      std::ignore = socket_.send(reply);
    }
  }
}

}  // namespace antdt::bench
