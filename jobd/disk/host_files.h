// A connection to the file service of one host's agent, apart from the connection for messages, so
// that bulk data does not delay those. For use by one thread, which it blocks.
//
// Every request is answered or fails. If the agent sends nothing for `silence` (or a longer time,
// if the disk may take long), the error is kUnreachable; if the connection is told to stop, it is
// kRefused; if the file does not exist, it is kCorrupt; if the run directory there belongs to
// another job's run, kUsage.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <utility>

#include "core/clock.h"
#include "core/result.h"
#include "core/transport/socket.h"
#include "core/wire/file_messages.h"
#include "core/wire/packet.h"

namespace antdt::jobd {

struct HostAddress {
  std::string endpoint;         // "10.0.0.1:7700"
  transport::KeyPair own_keys;  // the job's keys
  std::string agent_z85;        // the agent's public key
};

class HostFiles {
 public:
  // `stop`: when it becomes true, the operation ends with an error; null: never. `moved` is called
  // for each chunk that has arrived and was written.
  struct Watch {
    const std::atomic<bool>* stop = nullptr;
    std::function<void(std::uint64_t bytes)> moved = {};
    // How many requests wait for the other host's disk; null: nobody counts. See ask().
    std::atomic<std::uint32_t>* at_disk = nullptr;
    Duration silence = std::chrono::seconds(20);
    Duration answers = std::chrono::seconds(20);  // how long to wait for the agent's first message
  };
  [[nodiscard]] static Result<HostFiles> open(transport::Context& context,
                                              const HostAddress& address, const std::string& job,
                                              const std::string& run_dir, Watch watch);
  HostFiles(HostFiles&& other) noexcept
      : endpoint_(std::move(other.endpoint_)),
        job_(std::move(other.job_)),
        watch_(std::move(other.watch_)),
        socket_(std::move(other.socket_)),
        seq_(std::exchange(other.seq_, 0)) {}
  HostFiles& operator=(HostFiles&&) = delete;
  ~HostFiles();

  // `patience`: for a request that may keep the other host's disk busy for so long; zero: for
  // others.
  template <class T, class M>
  [[nodiscard]] Result<T> ask(const M& message, Duration patience = {});

  // Copies a file of a checkpoint from the other host, or to it. A part that is there already is
  // kept. kAborted if this host has no room for a fetched file, which is then removed. The checksum
  // is compared; for a pushed file when it is committed. Paths on the other host are as in
  // core/wire/file_messages.h.
  [[nodiscard]] Status fetch(const std::string& path_there, const std::string& path_here,
                             const wire::CheckpointFile& said);
  [[nodiscard]] Status push(const std::string& path_here, const std::string& path_there,
                            const wire::CheckpointFile& said);
  // Reads a whole small file.
  [[nodiscard]] Result<std::string> read_all(const std::string& path);

 private:
  HostFiles(std::string endpoint, std::string job, Watch watch, transport::Socket socket)
      : endpoint_(std::move(endpoint)),
        job_(std::move(job)),
        watch_(std::move(watch)),
        socket_(std::move(socket)) {}
  [[nodiscard]] Status fetch_rest(const std::string& path_there, const std::string& path_here,
                                  const wire::CheckpointFile& said);
  template <class M>
  [[nodiscard]] Result<std::uint64_t> send(const M& message);
  // The answer to `seq`, which must be the next one.
  [[nodiscard]] Result<wire::Packet> receive(std::uint64_t seq, Duration patience);
  [[nodiscard]] Status send_packet(const wire::Packet& packet);
  template <class T>
  [[nodiscard]] Result<T> open_answer(const wire::Packet& packet) const;

  std::string endpoint_;
  std::string job_;
  Watch watch_;
  transport::Socket socket_;
  std::uint64_t seq_ = 0;
};

template <class M>
Result<std::uint64_t> HostFiles::send(const M& message) {
  wire::Envelope envelope;
  envelope.job = job_;
  envelope.seq = ++seq_;
  ANTDT_RETURN_IF_ERROR(send_packet(wire::make_packet(std::move(envelope), message)));
  return seq_;
}

// The refusal's code determines the kind of error.
template <class T>
Result<T> HostFiles::open_answer(const wire::Packet& packet) const {
  ANTDT_TRY(const wire::Envelope envelope, wire::open_envelope(packet));
  if (envelope.kind != wire::Refused::kKind) return wire::open_reply<T>(packet);
  ANTDT_TRY(const wire::Refused refused, wire::decode<wire::Refused>(packet.body));
  const bool gone =
      refused.code == wire::RefusalCode::kMissing || refused.code == wire::RefusalCode::kCorrupt;
  const bool wrong = refused.code == wire::RefusalCode::kInvalid;
  return fail(gone    ? ErrorKind::kCorrupt
              : wrong ? ErrorKind::kUsage
                      : ErrorKind::kIo,
              "{}", refused.reason);
}

template <class T, class M>
Result<T> HostFiles::ask(const M& message, Duration patience) {
  ANTDT_TRY(const std::uint64_t seq, send(message));
  const bool at_disk = patience > Duration::zero() && watch_.at_disk != nullptr;
  if (at_disk) ++*watch_.at_disk;
  const auto packet = receive(seq, patience);
  if (at_disk) --*watch_.at_disk;
  if (!packet) return tl::unexpected<Error>(packet.error());
  return open_answer<T>(*packet);
}

}  // namespace antdt::jobd
