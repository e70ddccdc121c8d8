// The agent's side of file services: it starts one for each run whose files are requested, relays
// requests and answers unread, and ends the service when no link uses it.
//
// If a job of that name runs here, a link must have the key to which the job belongs. No other
// links reach the service. The number of a link's open requests is bounded.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "antdtd/files/file_frames.h"
#include "core/loop.h"
#include "core/os/owned_fd.h"
#include "core/wire/file_messages.h"

namespace antdt::antdtd {

class FileServices {
 public:
  struct Child {
    pid_t pid = 0;  // to be reaped by the caller
    OwnedFd socket;
  };
  struct Handlers {
    // Starts the file service of a run as the user of this key ("" over ipc).
    std::function<Result<Child>(const std::string& run_dir, const std::string& key)> start;
    // An error if the job does not belong to the user of this key.
    std::function<Status(const std::string& job, const std::string& key)> may_use;
    std::function<void(wire::Packet)> send;  // sends to packet.peer
  };
  FileServices(EventLoop& loop, Handlers handlers);
  ~FileServices();
  FileServices(const FileServices&) = delete;
  FileServices& operator=(const FileServices&) = delete;

  [[nodiscard]] static bool is_about_files(const std::string& kind);
  void handle(const wire::Envelope& envelope, wire::Packet packet);
  // The job is over here: its service ends, unless other links than its daemon's use it.
  void forget(const std::string& job);

 private:
  struct Service;
  void attach(const wire::Envelope& envelope, const wire::Packet& packet);
  [[nodiscard]] Status start(const std::string& job, const std::string& user,
                             const std::string& run_dir);
  void pass_on(const wire::Envelope& envelope, wire::Packet packet);
  void detach(const std::string& peer);
  void end(const std::string& key);
  void on_readable(const std::string& key);
  void write_more(const std::string& key);
  void refuse(const std::string& peer, std::uint64_t seq, wire::RefusalCode code,
              std::string reason);
  void look_for_idle();

  EventLoop& loop_;
  Handlers handlers_;
  std::map<std::string, std::unique_ptr<Service>> services_;  // by user and run directory
  std::map<std::string, std::string> links_;                  // peer to the key of its service
  TimerId idle_timer_;
};

}  // namespace antdt::antdtd
