#include "trainer/ps/replica/copied.h"

#include <fmt/format.h>

#include <string_view>
#include <tuple>

#include "core/overloaded.h"
#include "core/wire/codec.h"
#include "core/wire/dispatch.h"

namespace antdt::ps {
namespace {

// Of what no message carries.
constexpr std::string_view kRestored = "restored";
constexpr std::string_view kCutBegun = "cut-begun";
constexpr std::string_view kCutWritten = "cut-written";

template <class M>
void put(wire::PsCopied& copied, const M& message) {
  copied.kind = std::string(M::kKind);
  copied.body = wire::encode(message);
}

void put(wire::PsCopied& copied, std::string_view kind, const wire::PsSaved& saved) {
  copied.kind = std::string(kind);
  copied.body = wire::encode(saved);
}

template <class... M>
Result<node::Request> read_request(const wire::PsCopied& copied) {
  Result<node::Request> request =
      fail(ErrorKind::kCorrupt,
           "a primary copied '{}', which this server does not know: install "
           "the same release of AntDT on every host",
           copied.kind);
  std::ignore = wire::dispatch<M...>(copied.kind, copied.body, [&](auto message) {
    if (message) {
      request = node::Request(std::move(*message));
    } else {
      request = tl::unexpected<Error>(message.error());
    }
  });
  return request;
}

bool is_of_files(const std::string& kind) {
  return kind == kRestored || kind == kCutBegun || kind == kCutWritten;
}

Result<node::Event> read_of_files(const wire::PsCopied& copied) {
  ANTDT_TRY(wire::PsSaved saved, wire::decode<wire::PsSaved>(copied.body));
  if (copied.kind == kRestored) return node::Restored{saved.error};
  if (copied.kind == kCutBegun) return node::CutBegun{saved.number, saved.pause_us, saved.error};
  return node::CutWritten{saved.number, std::move(saved.files), saved.error};
}

Result<node::Event> read_event(const wire::PsCopied& copied, Generation generation) {
  if (is_of_files(copied.kind)) return read_of_files(copied);
  if (copied.kind == wire::PsServe::kKind) {
    ANTDT_TRY(auto serve, wire::decode<wire::PsServe>(copied.body));
    return node::Serve{std::move(serve)};
  }
  if (copied.kind == wire::PsCut::kKind) {
    ANTDT_TRY(auto cut, wire::decode<wire::PsCut>(copied.body));
    return node::OrderCut{std::move(cut)};
  }
  if (copied.kind == wire::PsApplied::kKind) {
    ANTDT_TRY(const auto applied, wire::decode<wire::PsApplied>(copied.body));
    return node::Acknowledged{copied.from.worker.index, applied};
  }
  ANTDT_TRY(auto request, (read_request<wire::PsPush, wire::PsCommit, wire::PsDecision,
                                        wire::PsIdle, wire::PsOpen, wire::PsPut>(copied)));
  const Asker from{{}, {copied.from.worker, copied.from.attempt}, copied.seq};
  return node::Asked{from, generation, std::move(request)};
}

}  // namespace

wire::PsCopied to_wire(const replica::Copied& copied) {
  wire::PsCopied message;
  message.view = copied.view;
  message.number = copied.number;
  std::visit(Overloaded{
                 [&](const node::Asked& e) {
                   message.from = {e.from.member.worker, e.from.member.attempt};
                   message.seq = e.from.seq;
                   std::visit(
                       Overloaded{
                           [](const node::Unreadable&) {},  // changes nothing, and is not copied
                           [&](const auto& body) { put(message, body); },
                       },
                       e.body);
                 },
                 [&](const node::Acknowledged& e) {
                   message.from.worker = WorkerId{'s', e.server};
                   put(message, e.applied);
                 },
                 [&](const node::Serve& e) { put(message, e.serve); },
                 [&](const node::OrderCut& e) { put(message, e.cut); },
                 [&](const node::Restored& e) {
                   put(message, kRestored, {0, 0, 0, {}, {}, e.error});
                 },
                 [&](const node::CutBegun& e) {
                   put(message, kCutBegun, {e.number, 0, e.pause_us, {}, {}, e.error});
                 },
                 [&](const node::CutWritten& e) {
                   put(message, kCutWritten, {e.number, 0, 0, e.files, {}, e.error});
                 },
                 [](const node::NoRoom&) {},  // nor are these
                 [](const node::Tick&) {},
             },
             copied.event);
  return message;
}

Result<replica::Copied> from_wire(const wire::PsCopied& copied, Generation generation) {
  ANTDT_TRY(auto event, read_event(copied, generation));
  return replica::Copied{copied.view, copied.number, std::move(event)};
}

}  // namespace antdt::ps
