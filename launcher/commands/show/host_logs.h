// The workers' output on hosts that do not share the run directory, read through their agents.
#pragma once

#include <atomic>
#include <cstdint>
#include <future>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "jobd/disk/host_files.h"
#include "launcher/view/worker_logs.h"

namespace antdt::cli {

// The hosts of a run, with one connection each. A broken connection is made again after a while.
// For use by one thread.
class HostLogs {
 public:
  // The hosts of the run's [cluster]; null if there are no other hosts.
  [[nodiscard]] static Result<std::unique_ptr<HostLogs>> of_run(const std::string& run_dir);
  ~HostLogs();

  [[nodiscard]] bool none() const { return hosts_.empty(); }
  // The logs that these hosts have now, each with its host. The first call waits for all hosts.
  [[nodiscard]] std::vector<launcher::WorkerLog> find();
  // Reads a part of a file in the host's logs/; kCorrupt if there is no such file.
  [[nodiscard]] Result<wire::FileData> read(const std::string& host, const std::string& name,
                                            std::uint64_t offset, std::uint64_t bytes);
  // Why hosts cannot be read now, by host.
  [[nodiscard]] std::map<std::string, std::string> troubles() const;

 private:
  struct Host {
    jobd::HostAddress address;
    std::optional<jobd::HostFiles> files = {};
    std::optional<std::future<Result<jobd::HostFiles>>> opening = {};
    MonoTime not_before{};  // after a failure: when it is tried again
    std::string trouble = {};
  };
  HostLogs(std::string run_dir, std::string job);
  [[nodiscard]] Result<jobd::HostFiles> open(const jobd::HostAddress& address);
  void connect();
  [[nodiscard]] bool connected(Host& host, Result<jobd::HostFiles> files);
  void failed(Host& host, const Error& error);
  template <class T, class M>
  [[nodiscard]] Result<T> ask(Host& host, const M& message);

  std::string run_dir_;
  std::string job_;
  std::unique_ptr<transport::Context> context_;
  SteadyClock clock_;
  std::atomic<bool> stop_ = false;
  bool waited_ = false;  // whether the first call has waited for all hosts
  std::list<Host> hosts_;
};

// Reads whole lines of a log on another host, as launcher::LogReader does on this one.
class HostLogReader {
 public:
  HostLogReader(HostLogs& logs, const launcher::WorkerLog& log, std::optional<std::size_t> lines);
  // The lines written since the last call. With `last`, also a line without a line end.
  [[nodiscard]] std::vector<std::string> read(bool last);

 private:
  void begin();
  void read_on();
  [[nodiscard]] bool read_to_end(const std::string& name);

  HostLogs& logs_;
  std::string host_;
  std::string name_;
  std::optional<std::size_t> lines_;  // how many of the existing lines to read
  bool begun_ = false;
  std::uint64_t inode_ = 0;   // inode of the file that is read
  std::uint64_t offset_ = 0;  // how far it has been read
  std::string text_;          // read but not returned yet
};

}  // namespace antdt::cli
