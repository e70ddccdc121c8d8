#include "trainer/ps/replica/copied.h"

#include <fmt/format.h>

#include <string_view>
#include <tuple>

#include "core/overloaded.h"
#include "core/wire/codec.h"
#include "core/wire/dispatch.h"

namespace antdt::ps {
namespace {

// The kind of an event that is not a message.
constexpr std::string_view kRestored = "restored";
constexpr std::uint64_t kMayPass = 1;  // as the number of kRestored: SlicesRead::refusal is kIo
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

Result<node::Input> read_of_files(const wire::PsCopied& copied) {
  ANTDT_TRY(wire::PsSaved saved, wire::decode<wire::PsSaved>(copied.body));
  if (copied.kind == kRestored) {
    return node::SlicesRead{saved.error, saved.number == kMayPass ? wire::RefusalCode::kIo
                                                                  : wire::RefusalCode::kCorrupt};
  }
  if (copied.kind == kCutBegun)
    return node::WritingBegun{saved.number, saved.pause_us, saved.error};
  return node::SlicesWritten{saved.number, std::move(saved.files), saved.error};
}

Result<node::Input> read_input(const wire::PsCopied& copied, Generation generation) {
  if (is_of_files(copied.kind)) return read_of_files(copied);
  if (copied.kind == wire::PsServe::kKind) {
    ANTDT_TRY(auto serve, wire::decode<wire::PsServe>(copied.body));
    return node::ServeOrdered{std::move(serve)};
  }
  if (copied.kind == wire::PsCut::kKind) {
    ANTDT_TRY(auto cut, wire::decode<wire::PsCut>(copied.body));
    return node::SlicesOrdered{std::move(cut)};
  }
  if (copied.kind == wire::PsApplied::kKind) {
    ANTDT_TRY(const auto applied, wire::decode<wire::PsApplied>(copied.body));
    return node::DecisionsApplied{copied.from.worker.index, applied};
  }
  ANTDT_TRY(auto request,
            (read_request<wire::PsPush, wire::PsCommit, wire::PsDecision, wire::PsIdle,
                          wire::PsOpen, wire::PsPut, wire::PsStepPull, wire::PsStepPush>(copied)));
  const Asker from{{}, {copied.from.worker, copied.from.attempt}, copied.seq};
  return node::RequestHeard{from, generation, std::move(request)};
}

}  // namespace

wire::PsCopied to_wire(const replica::EventCopied& copied) {
  wire::PsCopied message;
  message.view = copied.view;
  message.number = copied.number;
  std::visit(Overloaded{
                 [&](const node::RequestHeard& e) {
                   message.from = {e.from.member.worker, e.from.member.attempt};
                   message.seq = e.from.seq;
                   std::visit(
                       Overloaded{
                           [](const node::Unreadable&) {},  // it changes nothing, and is not copied
                           [&](const auto& body) { put(message, body); },
                       },
                       e.body);
                 },
                 [&](const node::DecisionsApplied& e) {
                   message.from.worker = WorkerId{'s', e.server};
                   put(message, e.applied);
                 },
                 [&](const node::ServeOrdered& e) { put(message, e.serve); },
                 [&](const node::SlicesOrdered& e) { put(message, e.cut); },
                 [&](const node::SlicesRead& e) {
                   const bool may_pass = e.refusal == wire::RefusalCode::kIo;
                   put(message, kRestored, {may_pass ? kMayPass : 0, 0, 0, {}, {}, e.error});
                 },
                 [&](const node::WritingBegun& e) {
                   put(message, kCutBegun, {e.number, 0, e.pause_us, {}, {}, e.error});
                 },
                 [&](const node::SlicesWritten& e) {
                   put(message, kCutWritten, {e.number, 0, 0, e.files, {}, e.error});
                 },
                 [](const node::TellUnsent&) {},  // these are not copied either
                 [](const node::TimePassed&) {},
             },
             copied.input);
  return message;
}

Result<replica::EventCopied> from_wire(const wire::PsCopied& copied, Generation generation) {
  ANTDT_TRY(auto input, read_input(copied, generation));
  return replica::EventCopied{copied.view, copied.number, std::move(input)};
}

}  // namespace antdt::ps
