#include "antdtd/file_service.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <type_traits>

#include "antdtd/file_frames.h"
#include "core/wire/packet.h"

namespace antdt::antdtd {
namespace {

const char* code_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kUsage:
      return "invalid";
    case ErrorKind::kUnreachable:
      return "missing";
    case ErrorKind::kCorrupt:
      return "corrupt";
    default:
      return "io";
  }
}

wire::Packet reply(const wire::Packet& to, const wire::Envelope& envelope, const auto& message) {
  wire::Envelope of_reply;
  of_reply.job = envelope.job;
  of_reply.seq = envelope.seq;
  wire::Packet packet = wire::make_packet(std::move(of_reply), message);
  packet.peer = to.peer;
  return packet;
}

wire::Packet refuse(const wire::Packet& to, const wire::Envelope& envelope, const Error& error) {
  return reply(to, envelope, wire::Refused{code_of(error.kind), error.message});
}

wire::FileDone as_message(const Status& /*done*/) { return {}; }
template <class T>
const T& as_message(const Result<T>& result) {
  return *result;
}

bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(put));
  }
  return true;
}

}  // namespace

wire::Packet answer_file_request(Result<RunFiles>& files, const wire::Packet& request) {
  const auto envelope = wire::open_envelope(request);
  if (!envelope) return refuse(request, {}, envelope.error());
  if (!files) return refuse(request, *envelope, files.error());
  std::optional<wire::Packet> answer;
  const auto try_as = [&]<class T>(std::type_identity<T>, auto&& act) {
    if (answer || envelope->kind != T::kKind) return;
    const auto message = wire::decode<T>(request.body);
    if (!message) {
      answer = refuse(request, *envelope, Error{ErrorKind::kUsage, message.error().message});
      return;
    }
    const auto done = act(*message);
    answer = done ? reply(request, *envelope, as_message(done))
                  : refuse(request, *envelope, done.error());
  };
  using std::type_identity;
  try_as(type_identity<wire::FileRead>(), [&](const auto& m) { return files->read(m); });
  try_as(type_identity<wire::FileWrite>(), [&](const auto& m) { return files->write(m); });
  try_as(type_identity<wire::FileSum>(), [&](const auto& m) { return files->sum(m); });
  try_as(type_identity<wire::FileCommit>(), [&](const auto& m) { return files->commit(m); });
  try_as(type_identity<wire::FileRemove>(), [&](const auto& m) { return files->remove(m); });
  try_as(type_identity<wire::FileList>(), [&](const auto&) { return files->list(); });
  try_as(type_identity<wire::FileProbe>(), [&](const auto& m) { return files->probe(m); });
  if (answer) return *answer;
  return refuse(
      request, *envelope,
      Error{ErrorKind::kUsage, fmt::format("a file service does not know '{}'", envelope->kind)});
}

int serve_files(int fd, const std::string& run_dir) {
  Result<RunFiles> files = RunFiles::open(run_dir);
  FrameReader reader;
  for (;;) {
    auto request = reader.next();
    if (!request) return 1;
    if (*request) {
      // What could not be opened a moment ago (a disk that was full) may be there now.
      if (!files) files = RunFiles::open(run_dir);
      if (!write_all(fd, to_frame(answer_file_request(files, **request)))) return 0;
      continue;
    }
    const auto [at, most] = reader.room();
    const ssize_t got = ::recv(fd, at, most, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return 0;  // the agent has closed it, or is gone
    reader.taken(static_cast<std::size_t>(got));
  }
}

}  // namespace antdt::antdtd
