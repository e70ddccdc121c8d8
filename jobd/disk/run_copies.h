// The hands of a CheckpointCopies (ctl/checkpoints/checkpoint_copies.h): connections to the file
// services of the hosts' agents, a few threads that move files over them, and the loop that hears
// of it.
//
// Without hosts that have an address (no cluster) everything is answered at once: the one host
// there is has the run directory.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/loop.h"
#include "core/os/disk_thread.h"
#include "ctl/checkpoints/checkpoint_copies.h"
#include "jobd/disk/checkpoint_transfer.h"

namespace antdt::jobd {

class RunCopies {
 public:
  struct Options {
    std::string run_dir;
    std::string job;
    std::uint32_t copies = 2;                     // hosts that are to have each checkpoint
    Duration answers = std::chrono::seconds(20);  // for an agent's first word
  };
  struct Handlers {
    std::function<void(const std::string& kind, const std::string& text)> note;
    std::function<void()> moved;  // about twice a second while files move
  };
  using Then = std::function<void(const std::string& error)>;

  RunCopies(EventLoop& loop, Options options, Handlers handlers);
  ~RunCopies();
  RunCopies(const RunCopies&) = delete;
  RunCopies& operator=(const RunCopies&) = delete;

  // The hosts of the cluster; `context` outlives this object.
  void add(transport::Context& context, HostAddress address);
  void host_up(const std::string& host);
  void host_lost(const std::string& host);

  // Files of the unfinished checkpoint in `directory` lie on these hosts: calls `then` when
  // they are here. Asked again meanwhile, the first answer is enough: `then` is replaced.
  void gather(std::uint64_t number, const std::string& directory,
              std::vector<ctl::copies::Part> parts, Then then);
  // What this host has now, the newest last; `stored` was unfinished in `directory` before.
  void kept(std::vector<std::string> names, const std::string& stored = {},
            const std::string& directory = {});
  // The job is done: what is unfinished on other hosts goes, too.
  void job_done(std::vector<std::string> names);
  // Whether somebody on `host` can read that checkpoint without more ado; else `reach` does
  // what it needs. `directory`: as messages name it, with or without the run directory.
  [[nodiscard]] bool can_read(const std::string& host, const std::string& directory) const;
  void reach(const std::string& host, const std::string& directory, Then then);
  // Calls `then` when no host is known to have a newer whole checkpoint than `newest`, a
  // directory or "", or all such were tried; `fetched`: one came.
  void find(const std::string& newest, std::function<void(bool fetched)> then);

  // Nothing is left to be copied or removed that could be now.
  [[nodiscard]] bool idle() const;
  // What any incarnation made to find out who shares the directory; for a thread.
  static void remove_probes(const std::string& run_dir);
  // Ends all threads, at most after so long; false: one stands still in a file system.
  [[nodiscard]] bool end(Duration patience);

 private:
  struct Outcome {
    Status status;
    bool probed = false;  // then:
    bool shares = false;
    std::vector<std::string> whole = {};
  };
  struct Running {
    std::size_t thread = 0;
    std::shared_ptr<std::atomic<bool>> stop;
  };
  struct Thread {
    std::unique_ptr<DiskThread> disk;
    std::size_t tasks = 0;
  };

  void step(const ctl::copies::Input& input);
  void perform(const ctl::copies::out::Probe& o);
  void perform(const ctl::copies::out::Fetch& o);
  void perform(const ctl::copies::out::Push& o);
  void perform(const ctl::copies::out::Clean& o);
  void perform(const ctl::copies::out::FetchBack& o);
  void perform(const ctl::copies::out::Cancel& o);
  void perform(const ctl::copies::out::Gathered& o);
  void perform(const ctl::copies::out::Reached& o);
  void perform(const ctl::copies::out::Found& o);
  void perform(const ctl::copies::out::Note& o);
  using Work = std::function<Outcome(HostFiles&)>;
  void begin(ctl::copies::TaskId task, const std::string& host, Work work);
  void done(ctl::copies::TaskId task, const Outcome& outcome);
  [[nodiscard]] Thread& idlest(std::size_t& index);
  void tick();

  EventLoop& loop_;
  Options options_;
  Handlers handlers_;
  std::string probe_;  // the name of this incarnation's
  transport::Context* context_ = nullptr;
  std::map<std::string, HostAddress> addresses_;
  ctl::copies::CheckpointCopies machine_;
  std::vector<ctl::copies::Input> waiting_;  // what effects lead to, while a step runs
  bool stepping_ = false;
  std::map<ctl::copies::TaskId, Running> running_;
  std::map<std::uint64_t, Then> gathering_;  // by the number of the checkpoint
  std::map<std::uint64_t, Then> reaching_;   // by the number of the need
  std::function<void(bool fetched)> finding_;
  std::uint64_t last_need_ = 0;
  std::shared_ptr<std::atomic<std::uint64_t>> moved_;
  std::uint64_t moved_said_ = 0;
  std::vector<Thread> threads_;  // begun when they are needed
  std::optional<TimerId> timer_;
};

}  // namespace antdt::jobd
