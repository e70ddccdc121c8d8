// The program that is this job's solution: shows it views, reads its decisions, and keeps its
// failures from the job. ctl/control/program_watch.h decides when it is started, asked and ended;
// ctl/job/solution_lines.h has the format.
//
// It is shown one view at a time, the next one after its answer. Its standard error is copied into
// a file of bounded size, and only as fast as ticks read it: a program that floods it waits, and
// its answer is late.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/loop.h"
#include "ctl/control/controller.h"
#include "ctl/control/program_watch.h"
#include "jobd/programs/child_program.h"

namespace antdt::jobd {

class OwnProgram {
 public:
  struct Options {
    std::vector<std::string> command;
    std::string directory;  // its working directory
    // Appends to the program's log without waiting for a disk.
    std::function<void(std::string words)> write_log;
  };
  using OnDecision = std::function<void(ctl::Decision decision, PlanVersion plan)>;
  using OnNews = std::function<void(const std::string& text)>;

  static constexpr std::size_t kLogBytes = 2U << 20;  // of both files of its log

  OwnProgram(EventLoop& loop, Options options, OnDecision on_decision, OnNews on_news);
  ~OwnProgram();
  OwnProgram(const OwnProgram&) = delete;
  OwnProgram& operator=(const OwnProgram&) = delete;

  void tick();  // called several times a second
  // The job asks for a decision on this view.
  void offer(const ctl::ClusterView& view, double time_s);
  void end();  // for good, if no tick follows; may be called from a callback
  [[nodiscard]] const std::string& trouble() const { return watch_.trouble(); }

 private:
  void tell(const ctl::program::Input& input);
  void start();
  void write();
  void read();
  void conclude(std::string_view line);
  void failed(const std::string& why);
  void closed(const char* what);
  void unwatch();
  void copy_errors();

  EventLoop& loop_;
  Options options_;
  OnDecision on_decision_;
  OnNews on_news_;
  ctl::program::ProgramWatch watch_;
  std::optional<ChildProgram> child_;
  std::optional<ctl::ClusterView> view_;  // the view on which a decision was asked for
  std::uint64_t number_ = 0;              // of the view, counted since the program was started
  std::string to_write_;
  std::string heard_;
  std::string last_words_;  // the last line of its standard error
  bool watched_ = false;    // its output is watched
  // When the program closed a stream: it is about to end, or will not answer any more.
  std::optional<MonoTime> closed_;
  std::string closed_what_;
  std::vector<pid_t> dying_;
};

}  // namespace antdt::jobd
