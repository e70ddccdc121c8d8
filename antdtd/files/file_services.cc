#include "antdtd/files/file_services.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <set>
#include <utility>
#include <vector>

#include "core/log/log.h"
#include "core/wire/packet.h"

namespace antdt::antdtd {
namespace {

// How much a service may not have read yet: four links with a full window each.
constexpr std::size_t kMostWaiting = 96UL * 1024 * 1024;
constexpr Duration kIdle = std::chrono::seconds(60);
constexpr Duration kLook = std::chrono::seconds(10);
// How many reads of one service are done in a turn, so that heartbeats do not wait for many of
// them.
constexpr int kReads = 64;

}  // namespace

struct FileServices::Service {
  std::string job;
  pid_t pid = 0;
  OwnedFd socket;
  OwnedFd writable;  // an epoll instance, readable when the socket can be written
  FrameReader reader;
  std::deque<FrameWriter> waiting;  // what the socket has not accepted yet
  std::size_t waiting_bytes = 0;
  bool watches_writable = false;
  std::set<std::string> peers;
  std::set<std::pair<std::string, std::uint64_t>> asked;  // link and seq of each request
  MonoTime used{};
};

FileServices::FileServices(EventLoop& loop, Handlers handlers)
    : loop_(loop),
      handlers_(std::move(handlers)),
      idle_timer_(loop.call_after(kLook, [this] { look_for_idle(); })) {}

FileServices::~FileServices() {
  loop_.cancel(idle_timer_);
  while (!services_.empty()) end(std::string(services_.begin()->first));
}

bool FileServices::is_about_files(const std::string& kind) {
  return kind.starts_with("file-") || kind.starts_with("files-");
}

void FileServices::refuse(const std::string& peer, std::uint64_t seq, wire::RefusalCode code,
                          std::string reason) {
  wire::Envelope envelope;
  envelope.seq = seq;
  wire::Packet packet = wire::make_packet(envelope, wire::Refused{code, std::move(reason)});
  packet.peer = peer;
  handlers_.send(std::move(packet));
}

void FileServices::handle(const wire::Envelope& envelope, wire::Packet packet) {
  if (envelope.kind == wire::FilesAttach::kKind) return attach(envelope, packet);
  if (envelope.kind == wire::FilesDetach::kKind) return detach(packet.peer);
  pass_on(envelope, std::move(packet));
}

void FileServices::attach(const wire::Envelope& envelope, const wire::Packet& packet) {
  const auto attach = wire::decode<wire::FilesAttach>(packet.body);
  if (!attach)
    return refuse(packet.peer, envelope.seq, wire::RefusalCode::kInvalid, attach.error().message);
  if (const Status may = handlers_.may_use(envelope.job, packet.user); !may) {
    return refuse(packet.peer, envelope.seq, wire::RefusalCode::kBusy, may.error().message);
  }
  const std::string key = fmt::format("{}\n{}", packet.user, attach->run_dir);
  // The service that the link leaves may end with that, so it is left before the new one is
  // looked for. A link that attaches to its own service again keeps it.
  const auto link = links_.find(packet.peer);
  if (link != links_.end() && link->second != key) detach(packet.peer);
  if (!services_.contains(key)) {
    if (const Status started = start(envelope.job, packet.user, attach->run_dir); !started) {
      return refuse(packet.peer, envelope.seq, wire::RefusalCode::kIo, started.error().message);
    }
  }
  Service& service = *services_.at(key);
  service.used = loop_.now();
  service.peers.insert(packet.peer);
  links_[packet.peer] = key;
  wire::Envelope reply;
  reply.job = envelope.job;
  reply.seq = envelope.seq;
  wire::Packet ready = wire::make_packet(reply, wire::FilesReady{});
  ready.peer = packet.peer;
  handlers_.send(std::move(ready));
}

Status FileServices::start(const std::string& job, const std::string& user,
                           const std::string& run_dir) {
  ANTDT_TRY(Child child, handlers_.start(run_dir, user));
  const std::string key = fmt::format("{}\n{}", user, run_dir);
  auto service = std::make_unique<Service>();
  service->job = job;
  service->pid = child.pid;
  service->socket = std::move(child.socket);
  service->writable = OwnedFd(::epoll_create1(EPOLL_CLOEXEC));
  epoll_event event{};
  event.events = EPOLLOUT;
  if (!service->writable.is_open() ||
      ::epoll_ctl(service->writable.get(), EPOLL_CTL_ADD, service->socket.get(), &event) != 0) {
    return fail_errno(ErrorKind::kIo, errno, "watching a file service");
  }
  ::fcntl(service->socket.get(), F_SETFL, O_NONBLOCK);
  loop_.watch_fd(service->socket.get(), [this, key] { on_readable(key); });
  const pid_t pid = service->pid;
  services_[key] = std::move(service);
  // The process may outlive its entry here, so whoever ends is reaped.
  const Status watched = loop_.watch_process(pid, [pid] { ::waitpid(pid, nullptr, WNOHANG); });
  if (!watched) ::waitpid(pid, nullptr, WNOHANG);
  log_info("the file service of {} runs as process {}", run_dir, pid);
  return {};
}

void FileServices::pass_on(const wire::Envelope& envelope, wire::Packet packet) {
  const auto link = links_.find(packet.peer);
  if (link == links_.end()) {
    return refuse(packet.peer, envelope.seq, wire::RefusalCode::kUnknown,
                  "this link does not speak for the files of a run: attach first");
  }
  Service& service = *services_.at(link->second);
  service.used = loop_.now();
  const std::string peer = packet.peer;
  FrameWriter frame(std::move(packet));
  if (service.waiting_bytes + frame.size() > kMostWaiting) {
    return refuse(peer, envelope.seq, wire::RefusalCode::kFull,
                  "the file service has too much under way: try again");
  }
  service.asked.insert({peer, envelope.seq});
  service.waiting_bytes += frame.size();
  service.waiting.push_back(std::move(frame));
  write_more(link->second);
}

void FileServices::write_more(const std::string& key) {
  const auto found = services_.find(key);
  if (found == services_.end()) return;
  Service& service = *found->second;
  while (!service.waiting.empty() &&
         service.waiting.front().write(service.socket.get()) == FrameWriter::Outcome::kAll) {
    service.waiting_bytes -= service.waiting.front().size();
    service.waiting.pop_front();
  }
  const bool more = !service.waiting.empty();
  if (more == service.watches_writable) return;
  service.watches_writable = more;
  if (more) {
    loop_.watch_fd(service.writable.get(), [this, key] { write_more(key); });
  } else {
    loop_.unwatch_fd(service.writable.get());
  }
}

void FileServices::on_readable(const std::string& key) {
  for (int n = 0; n < kReads; ++n) {
    const auto found = services_.find(key);
    if (found == services_.end()) return;
    Service& service = *found->second;
    const auto [at, most] = service.reader.room();
    const ssize_t got = ::recv(service.socket.get(), at, most, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) return end(key);
    service.reader.taken(static_cast<std::size_t>(got));
    service.used = loop_.now();
    for (;;) {
      auto packet = service.reader.next();
      if (!packet) {
        log_warn("{}", packet.error().message);
        return end(key);
      }
      if (!*packet) break;
      if (const auto envelope = wire::open_envelope(**packet)) {
        service.asked.erase({(*packet)->peer, envelope->seq});
      }
      if (service.peers.contains((*packet)->peer)) handlers_.send(std::move(**packet));
    }
  }
}

void FileServices::detach(const std::string& peer) {
  const auto link = links_.find(peer);
  if (link == links_.end()) return;
  const std::string key = link->second;
  links_.erase(link);
  const auto found = services_.find(key);
  if (found == services_.end()) return;
  found->second->peers.erase(peer);
  if (found->second->peers.empty()) end(key);
}

void FileServices::end(const std::string& key) {
  const auto found = services_.find(key);
  if (found == services_.end()) return;
  const std::unique_ptr<Service> service = std::move(found->second);
  services_.erase(found);
  loop_.unwatch_fd(service->socket.get());
  if (service->watches_writable) loop_.unwatch_fd(service->writable.get());
  std::erase_if(links_, [&](const auto& link) { return link.second == key; });
  for (const auto& [peer, seq] : service->asked) {
    refuse(peer, seq, wire::RefusalCode::kUnknown, "the file service has ended: attach again");
  }
}

void FileServices::forget(const std::string& job) {
  std::vector<std::string> over;
  for (const auto& [key, service] : services_) {
    if (service->job == job) over.push_back(key);
  }
  for (const std::string& key : over) end(key);
}

// Finds links that were closed without a message.
void FileServices::look_for_idle() {
  std::vector<std::string> idle;
  for (const auto& [key, service] : services_) {
    const bool waits = !service->asked.empty();
    if (!waits && loop_.now() - service->used > kIdle) idle.push_back(key);
  }
  for (const std::string& key : idle) end(key);
  idle_timer_ = loop_.call_after(kLook, [this] { look_for_idle(); });
}

}  // namespace antdt::antdtd
