#include "antdtd/inspect/inspector.h"

#include "antdtd/files/file_reply.h"
#include "antdtd/inspect/host_facts.h"
#include "core/overloaded.h"
#include "core/wire/dispatch.h"
#include "core/wire/inspect_messages.h"
#include "core/wire/packet.h"

namespace antdt::antdtd {

bool Inspector::is_for(std::string_view kind) {
  return kind == wire::FileHost::kKind || kind == wire::FileClock::kKind ||
         kind == wire::FileDisk::kKind || kind == wire::FilePort::kKind ||
         kind == wire::FileLink::kKind;
}

wire::Packet Inspector::answer(const wire::Envelope& envelope, const wire::Packet& request) {
  const Overloaded act{
      [&](const wire::FileHost& m) { return host_facts(m); },
      [&](const wire::FileClock&) { return Result<wire::FileClockTold>(clock_now()); },
      [&](const wire::FileDisk& m) { return disks_.look(run_dir_, m); },
      [&](const wire::FilePort& m) -> Result<wire::FilePortOpen> {
        listener_.reset();
        ANTDT_TRY(LinkListener opened, LinkListener::open(m));
        listener_.emplace(std::move(opened));
        return wire::FilePortOpen{listener_->port()};
      },
      [&](const wire::FileLink& m) { return measure_link(m); }};
  wire::Packet answer =
      file_refusal(request, envelope,
                   {ErrorKind::kUsage, fmt::format("a host is not asked for '{}'", envelope.kind)});
  std::ignore =
      wire::dispatch<wire::FileHost, wire::FileClock, wire::FileDisk, wire::FilePort,
                     wire::FileLink>(envelope.kind, request.body, [&](const auto& message) {
        if (!message) {
          answer = file_refusal(request, envelope, {ErrorKind::kUsage, message.error().message});
          return;
        }
        const auto done = act(*message);
        answer = done ? file_reply(request, envelope, *done)
                      : file_refusal(request, envelope, done.error());
      });
  return answer;
}

}  // namespace antdt::antdtd
