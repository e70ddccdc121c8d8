#include "jobd/disk/host_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <deque>
#include <thread>

#include "core/os/net.h"
#include "core/os/owned_fd.h"
#include "core/running_sum.h"

namespace antdt::jobd {
namespace {

constexpr std::uint64_t kFileChunk = 1ULL << 20;
// How many chunks are requested in advance: enough to fill a link of 10 Gbit/s with a delay of 10
// ms.
constexpr std::size_t kChunksUnderWay = 16;
constexpr Duration kLookForAnswer = std::chrono::milliseconds(200);
// Slowest disk to expect, for how long a read or a sync may take.
constexpr std::uint64_t kSlowestDisk = 5'000'000;  // bytes a second
constexpr std::uint64_t kMostOfSmall = 64ULL << 20;

Duration patience_for(std::uint64_t bytes) {
  return std::chrono::seconds(60 + bytes / kSlowestDisk);
}

// Why nothing comes from this end point: nobody listens there, or whoever does says nothing.
std::string why_silent(const std::string& endpoint, Duration waited) {
  constexpr Duration kPatience = std::chrono::seconds(2);
  const auto addresses = addresses_of(host_of(endpoint));
  if (!addresses) return fmt::format("finding {}: {}", endpoint, addresses.error().message);
  const int port = std::atoi(endpoint.c_str() + endpoint.rfind(':') + 1);
  const std::string at = with_port(addresses->front(), static_cast<std::uint16_t>(port));
  if (const Status reached = try_to_connect(at, kPatience); !reached) {
    return fmt::format("no agent can be reached at {} ({}): start antdtd there", endpoint,
                       reached.error().message);
  }
  return fmt::format("the file service of {} said nothing for {:.0f} s; does its disk stand still?",
                     endpoint, to_seconds(waited));
}

tl::unexpected<Error> fail_here(int error, std::string what) {
  const bool is_full = error == ENOSPC || error == EDQUOT;
  return fail_errno(is_full ? ErrorKind::kAborted : ErrorKind::kIo, error, std::move(what));
}

Result<OwnedFd> open_here(const std::string& path, int flags) {
  const int fd = ::open(path.c_str(), flags | O_CLOEXEC, 0600);
  if (fd >= 0) return OwnedFd(fd);
  return fail_here(errno, "opening " + path);
}

Status write_here(int fd, const std::string& path, std::string_view bytes, std::uint64_t offset) {
  while (!bytes.empty()) {
    const ssize_t put = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return fail_here(errno, "writing " + path);
    bytes.remove_prefix(static_cast<std::size_t>(put));
    offset += static_cast<std::uint64_t>(put);
  }
  return {};
}

Status read_here(int fd, const std::string& path, std::string& bytes, std::uint64_t offset) {
  std::size_t have = 0;
  while (have < bytes.size()) {
    const ssize_t got =
        ::pread(fd, bytes.data() + have, bytes.size() - have, static_cast<off_t>(offset + have));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_errno(ErrorKind::kIo, errno, "reading " + path);
    if (got == 0) return fail(ErrorKind::kCorrupt, "{} is shorter than it was", path);
    have += static_cast<std::size_t>(got);
  }
  return {};
}

}  // namespace

Result<HostFiles> HostFiles::open(transport::Context& context, const HostAddress& address,
                                  const std::string& job, const std::string& run_dir, Watch watch) {
  ANTDT_TRY(auto socket, transport::Socket::connect_tcp(context, address.endpoint, address.own_keys,
                                                        address.agent_z85));
  const Duration silence = std::exchange(watch.silence, watch.answers);
  HostFiles files(address.endpoint, job, std::move(watch), std::move(socket));
  ANTDT_TRY([[maybe_unused]] const auto ready,
            files.ask<wire::FilesReady>(wire::FilesAttach{run_dir}));
  files.watch_.silence = silence;
  return files;
}

HostFiles::~HostFiles() {
  if (seq_ == 0) return;  // moved from, or never used
  wire::Envelope envelope;
  envelope.job = job_;
  [[maybe_unused]] const auto sent =
      socket_.send(wire::make_packet(std::move(envelope), wire::FilesDetach{}));
}

Status HostFiles::send_packet(const wire::Packet& packet) {
  const SteadyClock clock;
  const MonoTime until = clock.now() + watch_.silence;
  while (socket_.send(packet) != transport::SendOutcome::kSent) {
    if (watch_.stop != nullptr && *watch_.stop) return fail(ErrorKind::kRefused, "it was stopped");
    if (clock.now() > until) {
      return fail(ErrorKind::kUnreachable, "{} takes nothing more", endpoint_);
    }
    // nothing announces room in the socket
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return {};
}

Result<wire::Packet> HostFiles::receive(std::uint64_t seq, Duration patience) {
  const SteadyClock clock;
  const Duration limit = std::max(patience, watch_.silence);
  const MonoTime until = clock.now() + limit;
  for (;;) {
    if (watch_.stop != nullptr && *watch_.stop) return fail(ErrorKind::kRefused, "it was stopped");
    if (auto packet = socket_.receive()) {
      const auto envelope = wire::open_envelope(*packet);
      if (!envelope || envelope->seq < seq) continue;
      if (envelope->seq == seq) return std::move(*packet);
      return fail(ErrorKind::kCorrupt, "{} answered request {} before {}", endpoint_, envelope->seq,
                  seq);
    }
    if (clock.now() > until) {
      return fail(ErrorKind::kUnreachable, "{}", why_silent(endpoint_, limit));
    }
    [[maybe_unused]] const bool readable =
        socket_.wait_readable(std::min<Duration>(kLookForAnswer, until - clock.now()));
  }
}

Status HostFiles::fetch(const std::string& path_there, const std::string& path_here,
                        const wire::CheckpointFile& said) {
  Status fetched = fetch_rest(path_there, path_here, said);
  const bool is_full = !fetched && fetched.error().kind == ErrorKind::kAborted;
  if (is_full) ::unlink(path_here.c_str());  // it only takes the room that another one needs
  return fetched;
}

Status HostFiles::fetch_rest(const std::string& path_there, const std::string& path_here,
                             const wire::CheckpointFile& said) {
  ANTDT_TRY(const OwnedFd file, open_here(path_here, O_RDWR | O_CREAT));
  RunningSum sum;
  ANTDT_RETURN_IF_ERROR(sum.add_file(file.get(), said.bytes));  // left by an earlier try
  const bool whole = sum.bytes() == 0;  // fetched in one piece, and not the rest of an earlier try
  std::uint64_t asked = sum.bytes();
  std::deque<std::uint64_t> under_way;
  while (sum.bytes() < said.bytes) {
    while (asked < said.bytes && under_way.size() < kChunksUnderWay) {
      const std::uint64_t bytes = std::min(kFileChunk, said.bytes - asked);
      ANTDT_TRY(const std::uint64_t seq, send(wire::FileRead{path_there, asked, bytes}));
      under_way.push_back(seq);
      asked += bytes;
    }
    ANTDT_TRY(const wire::Packet packet, receive(under_way.front(), {}));
    under_way.pop_front();
    ANTDT_TRY(const wire::FileData data, open_answer<wire::FileData>(packet));
    const std::uint64_t expected = std::min(kFileChunk, said.bytes - sum.bytes());
    if (data.data.size() != expected || data.size != said.bytes) {
      return fail(ErrorKind::kCorrupt, "{} of {} should have {} bytes and has {}", path_there,
                  endpoint_, said.bytes, data.size);
    }
    ANTDT_RETURN_IF_ERROR(write_here(file.get(), path_here, data.data, sum.bytes()));
    sum.add(data.data);
    if (watch_.moved) watch_.moved(data.data.size());
  }
  struct stat now {};
  const bool sized = ::fstat(file.get(), &now) == 0;
  const bool right = sized && static_cast<std::uint64_t>(now.st_size) == said.bytes &&
                     sum.bytes() == said.bytes && sum.hex() == said.xxh3;
  if (!right) {
    ::unlink(path_here.c_str());
    if (whole && sum.bytes() == said.bytes && sum.hex() != said.xxh3) {
      return fail(ErrorKind::kCorrupt, "{} is damaged on {}: it has another checksum", path_there,
                  endpoint_);
    }
    return fail(ErrorKind::kIo, "{} from {} arrived with another checksum: it is fetched again",
                path_there, endpoint_);
  }
  if (::fsync(file.get()) == 0) return {};
  return fail_here(errno, "syncing " + path_here);
}

Status HostFiles::push(const std::string& path_here, const std::string& path_there,
                       const wire::CheckpointFile& said) {
  ANTDT_TRY(const OwnedFd file, open_here(path_here, O_RDONLY));
  ANTDT_TRY(const wire::FileSummed there,
            ask<wire::FileSummed>(wire::FileSum{path_there}, patience_for(said.bytes)));
  if (there.bytes == said.bytes && there.xxh3 == said.xxh3) return {};
  std::uint64_t at = there.bytes < said.bytes ? there.bytes : 0;
  struct Chunk {
    std::uint64_t seq = 0;
    std::uint64_t bytes = 0;
  };
  std::deque<Chunk> under_way;
  const auto take_one = [&]() -> Status {
    const Chunk sent = under_way.front();
    under_way.pop_front();
    ANTDT_TRY(const wire::Packet packet, receive(sent.seq, {}));
    ANTDT_TRY([[maybe_unused]] const auto done, open_answer<wire::FileDone>(packet));
    if (watch_.moved) watch_.moved(sent.bytes);
    return {};
  };
  bool begun = at > 0;
  wire::FileWrite chunk{path_there, at, {}};
  while (at < said.bytes || !begun) {
    begun = true;
    chunk.offset = at;
    chunk.data.resize(std::min(kFileChunk, said.bytes - at));
    ANTDT_RETURN_IF_ERROR(read_here(file.get(), path_here, chunk.data, at));
    at += chunk.data.size();
    if (under_way.size() >= kChunksUnderWay) ANTDT_RETURN_IF_ERROR(take_one());
    ANTDT_TRY(const std::uint64_t seq, send(chunk));
    under_way.push_back({seq, chunk.data.size()});
  }
  while (!under_way.empty()) ANTDT_RETURN_IF_ERROR(take_one());
  return {};
}

Result<std::string> HostFiles::read_all(const std::string& path) {
  std::string text;
  for (;;) {
    ANTDT_TRY(const wire::FileData data,
              ask<wire::FileData>(wire::FileRead{path, text.size(), kFileChunk}));
    if (data.size > kMostOfSmall) {
      return fail(ErrorKind::kCorrupt, "{} of {} has {} bytes", path, endpoint_, data.size);
    }
    text += data.data;
    if (text.size() >= data.size || data.data.empty()) return text;
  }
}

}  // namespace antdt::jobd
