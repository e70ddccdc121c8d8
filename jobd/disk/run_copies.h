// The driver of CheckpointCopies (ctl/checkpoints/checkpoint_copies.h): connections to the file
// services of the hosts' agents, a few threads that copy files over them, and callbacks on the
// loop.
//
// If there are no hosts with an address (no cluster), every request is answered at once, because
// the only host has the run directory.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/loop.h"
#include "core/threads/disk_thread.h"
#include "ctl/checkpoints/checkpoint_copies.h"
#include "jobd/disk/checkpoint_transfer.h"

namespace antdt::jobd {

class RunCopies {
 public:
  struct Options {
    std::string run_dir;
    std::string job;
    std::uint32_t copies = 2;                     // how many hosts are to have each checkpoint
    Duration answers = std::chrono::seconds(20);  // how long to wait for an agent's first message
  };
  struct Handlers {
    std::function<void(const std::string& kind, const std::string& text)> note;
    std::function<void()> moved;  // called about twice a second while files are copied, or checked
    // Whose the run directory is that a host has: `trouble` says that it is another job's; "": this
    // one's. Called after each probe; empty: nobody wants to know.
    std::function<void(const std::string& host, const std::string& trouble)> owned = {};
  };
  using Then = std::function<void(const std::string& error)>;

  // `clock` is that of its threads.
  RunCopies(EventLoop& loop, const Clock& clock, Options options, Handlers handlers);
  ~RunCopies();
  RunCopies(const RunCopies&) = delete;
  RunCopies& operator=(const RunCopies&) = delete;

  // Adds a host of the cluster. `context` must outlive this object.
  void add(transport::Context& context, HostAddress address);
  void host_up(const std::string& host);
  void host_lost(const std::string& host);

  // Files of the unfinished checkpoint in `directory` lie on these hosts. Calls `then` when they
  // are on this host. If it is requested again before that, `then` is replaced, and called once.
  void gather(std::uint64_t number, const std::string& directory,
              std::vector<ctl::copies::Part> parts, Then then);
  // The checkpoints on this host now, the newest last. `stored` was unfinished in `directory`
  // before.
  void kept(std::vector<std::string> names, const std::string& stored = {},
            const std::string& directory = {});
  // The job is done, so unfinished checkpoints on other hosts are removed, too.
  void job_done(std::vector<std::string> names);
  // Whether a process on `host` can read that checkpoint now; otherwise `reach` copies it there.
  // `directory`: as messages name it, with or without the run directory.
  [[nodiscard]] bool can_read(const std::string& host, const std::string& directory) const;
  void reach(const std::string& host, const std::string& directory, Then then);
  // Calls `then` when no host is known to have a newer complete checkpoint than `newest` (a
  // directory, or ""), or when one was fetched, or fetching failed from all hosts.
  using Found = ctl::copies::TellFound;
  void find(const std::string& newest, std::function<void(const Found&)> then);
  // Training goes on from what is here: other hosts may remove what is not.
  void chosen();
  // Members or servers could not read that checkpoint: copies are compared before they count again.
  void doubt(const std::string& directory);
  // What was written of checkpoints up to this age is removed on other hosts.
  void given_up(ctl::copies::Age up_to);

  // Whether nothing is left that could be copied or removed now.
  [[nodiscard]] bool idle() const;
  // How many bytes were copied so far.
  [[nodiscard]] std::uint64_t moved() const { return *moved_; }
  // How many hosts check or sync what they have, within the time that this may take: no bytes move
  // then. One that did not answer within it does not count again before it has answered.
  [[nodiscard]] std::size_t hosts_at_disk() const;
  // A sentence for each checkpoint that still lacks copies that it could have.
  [[nodiscard]] std::vector<std::string> lacking() const;
  // Removes the probes by which incarnations found out which hosts share the directory. To be
  // called on a thread.
  static void remove_probes(const std::string& run_dir);
  // Ends all threads. False if one is still stuck in a filesystem after `patience`.
  [[nodiscard]] bool end(Duration patience);

 private:
  struct Outcome {
    Status status;
    bool probed = false;  // the host was asked; if it has answered:
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
  void perform(const ctl::copies::ProbeHost& o);
  void perform(const ctl::copies::FetchPart& o);
  void perform(const ctl::copies::PushCopy& o);
  void perform(const ctl::copies::CleanHost& o);
  void perform(const ctl::copies::FetchCopy& o);
  void perform(const ctl::copies::CancelTask& o);
  void perform(const ctl::copies::TellGathered& o);
  void perform(const ctl::copies::TellReached& o);
  void perform(const ctl::copies::TellFound& o);
  void perform(const ctl::copies::PublishCopyNote& o);
  using Work = std::function<Outcome(HostFiles&)>;
  void begin(ctl::copies::TaskId task, const std::string& host, Work work);
  void done(ctl::copies::TaskId task, const std::string& host, const Outcome& outcome);
  [[nodiscard]] Thread& idlest(std::size_t& index);
  void tick();

  EventLoop& loop_;
  const Clock& clock_;
  Options options_;
  Handlers handlers_;
  std::string probe_;  // name of this incarnation's probe
  transport::Context* context_ = nullptr;
  std::map<std::string, HostAddress> addresses_;
  ctl::copies::CheckpointCopies machine_;
  std::vector<ctl::copies::Input> waiting_;  // inputs that effects lead to while a step runs
  bool stepping_ = false;
  std::map<ctl::copies::TaskId, Running> running_;
  std::map<std::uint64_t, Then> gathering_;  // by the checkpoint's number
  std::map<std::uint64_t, Then> reaching_;   // by the number of the need
  std::function<void(const Found&)> finding_;
  std::uint64_t last_need_ = 0;
  std::shared_ptr<std::atomic<std::uint64_t>> moved_;
  std::uint64_t moved_said_ = 0;
  // By host: how many of its tasks wait for its disk; and those whose last task was not answered.
  std::map<std::string, std::shared_ptr<std::atomic<std::uint32_t>>> at_disk_;
  std::set<std::string> stuck_;
  std::vector<Thread> threads_;  // started when they are needed
  std::optional<TimerId> timer_;
};

}  // namespace antdt::jobd
