#include "antdtd/files/file_service.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

#include "antdtd/files/file_frames.h"
#include "antdtd/files/file_reply.h"
#include "antdtd/inspect/inspector.h"
#include "core/os/process.h"
#include "core/overloaded.h"
#include "core/wire/dispatch.h"
#include "core/wire/packet.h"

namespace antdt::antdtd {
namespace {

wire::RefusalCode code_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kUsage:
      return wire::RefusalCode::kInvalid;
    case ErrorKind::kUnreachable:
      return wire::RefusalCode::kMissing;
    case ErrorKind::kCorrupt:
      return wire::RefusalCode::kCorrupt;
    default:
      return wire::RefusalCode::kIo;
  }
}

bool changes_files(std::string_view kind) {
  return kind == wire::FileWrite::kKind || kind == wire::FileCommit::kKind ||
         kind == wire::FileRemove::kKind;
}

wire::FileDone as_message(const Status& /*done*/) { return {}; }
template <class T>
const T& as_message(const Result<T>& result) {
  return *result;
}

}  // namespace

wire::Packet file_refusal(const wire::Packet& to, const wire::Envelope& envelope,
                          const Error& error) {
  return file_reply(to, envelope, wire::Refused{code_of(error.kind), error.message});
}

wire::Packet answer_file_request(Result<RunFiles>& files, const wire::Packet& request) {
  const auto envelope = wire::open_envelope(request);
  if (!envelope) return file_refusal(request, {}, envelope.error());
  if (!files) return file_refusal(request, *envelope, files.error());
  if (changes_files(envelope->kind)) {
    if (const Status may = files->check_is_of(envelope->job); !may) {
      return file_refusal(request, *envelope, may.error());
    }
  }
  std::optional<wire::Packet> answer;
  const auto act =
      Overloaded{[&](const wire::FileRead& m) { return files->read(m); },
                 [&](const wire::FileWrite& m) { return files->write(m); },
                 [&](const wire::FileSum& m) { return files->sum(m); },
                 [&](const wire::FileCommit& m) { return files->commit(m); },
                 [&](const wire::FileRemove& m) { return files->remove(m); },
                 [&](const wire::FileList&) { return files->list(); },
                 [&](const wire::FileProbe& m) { return files->probe(m, envelope->job); }};
  const bool known =
      wire::dispatch<wire::FileRead, wire::FileWrite, wire::FileSum, wire::FileCommit,
                     wire::FileRemove, wire::FileList,
                     wire::FileProbe>(envelope->kind, request.body, [&](const auto& message) {
        if (!message) {
          answer = file_refusal(request, *envelope, {ErrorKind::kUsage, message.error().message});
          return;
        }
        const auto done = act(*message);
        answer = done ? file_reply(request, *envelope, as_message(done))
                      : file_refusal(request, *envelope, done.error());
      });
  if (known) return *answer;
  return file_refusal(
      request, *envelope,
      Error{ErrorKind::kUsage, fmt::format("a file service does not know '{}'", envelope->kind)});
}

int serve_files(int fd, const std::string& run_dir) {
  keep_freed_memory();
  Result<RunFiles> files = RunFiles::open(run_dir);
  Inspector inspector(run_dir);
  FrameReader reader;
  for (;;) {
    auto request = reader.next();
    if (!request) return 1;
    if (*request) {
      const auto envelope = wire::open_envelope(**request);
      if (envelope && Inspector::is_for(envelope->kind)) {
        FrameWriter told(inspector.answer(*envelope, **request));
        if (told.write(fd) != FrameWriter::Outcome::kAll) return 0;
        continue;
      }
      // A directory that could not be opened a moment ago (on a full disk) may be there now.
      if (!files) files = RunFiles::open(run_dir);
      FrameWriter answer(answer_file_request(files, **request));
      if (answer.write(fd) != FrameWriter::Outcome::kAll) return 0;
      continue;
    }
    const auto [at, most] = reader.room();
    const ssize_t got = ::recv(fd, at, most, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return 0;  // the agent has closed the socket, or has ended
    reader.taken(static_cast<std::size_t>(got));
  }
}

}  // namespace antdt::antdtd
