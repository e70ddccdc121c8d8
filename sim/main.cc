// sim-run: runs seeds until one breaks an invariant.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "sim/run.h"

namespace {

using antdt::sim::Options;
using antdt::sim::Pinning;
using antdt::sim::RunReport;
using antdt::sim::Sync;

constexpr const char* kUsage =
    "usage: sim-run [--seeds N] [--start S] [--faults none|workers|daemon|agents|disks|store|"
    "operators|messages|programs|data|all] [--sync "
    "allreduce|ds-sync|gaia|servers|shadow|hybrid|any] "
    "[--pin never|always|any] [--trace] [--keep-going] [--transcript FILE]\n";

struct Wanted {
  Options options;
  std::uint64_t seeds = 1000;
  std::uint64_t start = 1;
  bool keep_going = false;
  std::string transcript;
};

std::uint64_t seed_now = 0;

// If a check inside a machine ends the process, the seed is printed.
void say_seed(int) {
  std::fprintf(stderr, "sim-run: seed %llu aborted\n", static_cast<unsigned long long>(seed_now));
  std::signal(SIGABRT, SIG_DFL);
  std::abort();
}

bool set_sync(const std::string& name, Sync& sync) {
  sync = name == "servers"   ? Sync::kServers
         : name == "ds-sync" ? Sync::kDsSync
         : name == "gaia"    ? Sync::kGaia
         : name == "shadow"  ? Sync::kShadow
         : name == "hybrid"  ? Sync::kHybrid
         : name == "any"     ? Sync::kAny
                             : Sync::kAllReduce;
  return sync != Sync::kAllReduce || name == "allreduce";
}

bool set_pinning(const std::string& name, Pinning& pinning) {
  pinning = name == "always" ? Pinning::kAlways
            : name == "any"  ? Pinning::kSeedDecides
                             : Pinning::kNever;
  return pinning != Pinning::kNever || name == "never";
}

bool parse(int argc, char** argv, Wanted& wanted) {
  wanted.options.sync = Sync::kAny;
  wanted.options.pinning = Pinning::kSeedDecides;
  antdt::sim::set_faults("all", wanted.options.faults);
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    const bool has_value = i + 1 < argc;
    if (flag == "--trace") {
      wanted.options.trace = true;
    } else if (flag == "--keep-going") {
      wanted.keep_going = true;
    } else if (flag == "--seeds" && has_value) {
      wanted.seeds = std::strtoull(argv[++i], nullptr, 10);
    } else if (flag == "--start" && has_value) {
      wanted.start = std::strtoull(argv[++i], nullptr, 10);
    } else if (flag == "--transcript" && has_value) {
      wanted.transcript = argv[++i];
    } else if (flag == "--sync" && has_value) {
      if (!set_sync(argv[++i], wanted.options.sync)) return false;
    } else if (flag == "--pin" && has_value) {
      if (!set_pinning(argv[++i], wanted.options.pinning)) return false;
    } else if (flag == "--faults" && has_value) {
      if (!antdt::sim::set_faults(argv[++i], wanted.options.faults)) return false;
    } else {
      return false;
    }
  }
  return true;
}

// The last lines, or all of them into a file.
void show(const std::string& transcript, const std::string& file) {
  if (!file.empty()) {
    if (std::FILE* out = std::fopen(file.c_str(), "w")) {
      std::fwrite(transcript.data(), 1, transcript.size(), out);
      std::fclose(out);
      return;
    }
  }
  constexpr std::size_t kShown = 20000;
  const std::size_t from = transcript.size() > kShown ? transcript.size() - kShown : 0;
  std::fputs(transcript.c_str() + from, stdout);
}

void explain(Options options, const RunReport& report, const std::string& file) {
  options.trace = true;
  const RunReport again = antdt::sim::run(options);
  show(again.transcript, file);
  std::printf("seed %llu, event %llu: \"%s\" is broken: %s\n",
              static_cast<unsigned long long>(options.seed),
              static_cast<unsigned long long>(report.violation->event),
              report.violation->invariant.c_str(), report.violation->detail.c_str());
  if (!again.violation || again.violation->event != report.violation->event) {
    std::printf("and it did not replay: the simulation is not deterministic\n");
  }
}

}  // namespace

int main(int argc, char** argv) {
  Wanted wanted;
  if (!parse(argc, argv, wanted)) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  std::signal(SIGABRT, say_seed);
  std::uint64_t failed = 0, events = 0, most = 0;
  for (std::uint64_t i = 0; i < wanted.seeds; ++i) {
    Options options = wanted.options;
    options.seed = seed_now = wanted.start + i;
    const RunReport report = antdt::sim::run(options);
    events += report.events;
    most = std::max(most, report.events);
    if (!report.violation) {
      if (wanted.options.trace) show(report.transcript, wanted.transcript);
      continue;
    }
    ++failed;
    if (wanted.keep_going) {
      std::printf("seed %llu: %s: %s\n", static_cast<unsigned long long>(options.seed),
                  report.violation->invariant.c_str(), report.violation->detail.c_str());
      continue;
    }
    explain(options, report, wanted.transcript);
    return 1;
  }
  std::printf("%llu seeds from %llu: %llu failed; %llu events, %llu in the longest\n",
              static_cast<unsigned long long>(wanted.seeds),
              static_cast<unsigned long long>(wanted.start),
              static_cast<unsigned long long>(failed), static_cast<unsigned long long>(events),
              static_cast<unsigned long long>(most));
  return failed > 0 ? 1 : 0;
}
