#include "sim/fleet/long_run.h"

#include <fmt/format.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <utility>

#include "ctl/job/report.h"
#include "shard_server/history/history.h"
#include "shard_server/journal/journal.h"
#include "sim/fleet/player.h"

namespace antdt::fleet {
namespace {

using shard_server::History;
using shard_server::Journal;
using shard_server::JournalContent;
using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr Duration kDay = hours(24);
constexpr std::uint32_t kSamples = 100;  // of each worker, a step

// A solution that moves one sample from a worker to the next in every decision, around the ring.
class Restless final : public ctl::Solution {
 public:
  std::string_view name() const override { return "restless"; }
  ctl::Decision decide(const ctl::ClusterView& view, MonoTime) override {
    const std::size_t size = view.workers.size();
    if (size < 2) return {};
    ctl::AdjustBatch batch;
    for (const ctl::WorkerView& w : view.workers)
      batch.shares.push_back({w.member.worker, w.share});
    ctl::Share& from = batch.shares[turn_ % size];
    ctl::Share& to = batch.shares[(turn_ + 1) % size];
    ++turn_;
    if (from.samples < 2) return {};
    --from.samples;
    ++to.samples;
    batch.because_of = from.worker;
    std::string reason = fmt::format(
        "{} takes 1.37 times as long for a sample as the median of the others ({} of them): it "
        "gets "
        "{} samples in place of {}, which is expected to take 3.1% off each step",
        to_string(from.worker), size - 1, from.samples, from.samples + 1);
    return {{std::move(batch)}, std::move(reason)};
  }

 private:
  std::size_t turn_ = 0;
};

class Steady final : public Speeds {
 public:
  explicit Steady(double step_s) : per_sample_s_(step_s / kSamples) {}
  BatchTime at(std::uint32_t, double, std::uint64_t) const override {
    BatchTime time;
    time.per_sample_s = per_sample_s_;
    return time;
  }
  double noise(std::uint32_t, std::uint64_t) const override { return 1; }

 private:
  double per_sample_s_;
};

std::uint64_t size_of(const std::string& path) {
  std::error_code none;
  const std::uintmax_t size = std::filesystem::file_size(path, none);
  return none ? 0 : size;
}

template <class Sections>
std::uint64_t bytes_of(const Sections& sections) {
  std::uint64_t bytes = 0;
  for (const auto& section : sections) bytes += section.bytes.size();
  return bytes;
}

std::uint64_t resident_bytes() {
  std::uint64_t all = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

// A histogram: how many turns wrote how many bytes, in classes of less than a hundredth.
class Sizes {
 public:
  void add(std::uint64_t bytes) {
    const int rest = std::max(0, static_cast<int>(std::bit_width(bytes)) - 8);
    ++counts_[((bytes >> rest) + 1) << rest];
    ++all_;
    most_ = std::max(most_, bytes);
  }
  [[nodiscard]] std::uint64_t all() const { return all_; }
  [[nodiscard]] std::uint64_t most() const { return most_; }
  [[nodiscard]] std::uint64_t p99() const {
    std::uint64_t seen = 0;
    for (const auto& [bytes, count] : counts_) {
      if ((seen += count) * 100 >= all_ * 99) return std::min(bytes, most_);
    }
    return 0;
  }

 private:
  std::map<std::uint64_t, std::uint64_t> counts_;
  std::uint64_t all_ = 0, most_ = 0;
};

ctl::JobMachineConfig machine_of(const LongRun& run) {
  const double steps_an_epoch = run.epoch_hours * 3600 / run.step_s;
  ctl::JobMachineConfig machine;
  machine.job = "month";
  machine.hang_after = from_seconds(10 * run.step_s);
  machine.control.rules.global_batch = kSamples * run.workers;
  machine.control.monitor.transient_window = minutes(1);
  machine.control.monitor.persistent_window = minutes(10);
  ctl::JobSpec& spec = machine.spec;
  spec.epochs = static_cast<std::uint32_t>(run.days * 24 / run.epoch_hours) + 10;
  spec.train_records =
      static_cast<std::uint64_t>(steps_an_epoch) * machine.control.rules.global_batch;
  spec.checkpoint_every = minutes(10);
  for (const char* cls : {"host", "oom", "program", "signal", "hang", "collective"})
    spec.budgets[cls] = 1'000'000;
  machine.ledger.train = {spec.train_records, 1000ULL * run.workers, shard_server::Shuffle::kFull,
                          7};
  return machine;
}

// The job daemon's files, and the failures and operations that happen to the job.
class Weeks final : public Onlooker {
 public:
  Weeks(const LongRun& run, const std::vector<std::string>& hosts, Journal journal, History history,
        const std::function<void(const LongDay&)>& on_day)
      : run_(run),
        hosts_(hosts),
        journal_(std::move(journal)),
        history_(std::move(history)),
        on_day_(on_day) {}

  void begin(Player& player) override;
  void persist(const ctl::job::PersistRecord& record) override {
    journal_->append(record.kind, record.bytes);
    turn_bytes_ += record.kind.size() + record.bytes.size();
    if (record.kind == ctl::kImageRecord) day_.image = std::max(day_.image, record.bytes.size());
  }
  void remember(shard_server::history::Entry entry) override { history_.append(std::move(entry)); }
  void end_turn() override;
  [[nodiscard]] const Status& trouble() const { return trouble_; }

 private:
  using Act = void (Weeks::*)();
  void every(Duration period, Act act);
  void after(Duration delay, std::function<void()> what) {
    player_->world().after(delay, std::move(what));
  }
  [[nodiscard]] std::string path(const char* name) const { return run_.directory + "/" + name; }
  [[nodiscard]] sim::Rng& rng() { return player_->world().rng(); }
  // Orders `act` for the moment between two turns.
  void at_turns_end(Act act) { waiting_.push_back(act); }

  void say_something();
  void fail_one();
  void lose_host();
  void lose_all();
  void evict();
  void resize();
  void ask_for_restart() { at_turns_end(&Weeks::restart); }
  void ask_for_end_of_day() { at_turns_end(&Weeks::end_day); }
  void restart();
  void end_day();
  [[nodiscard]] Status commit();
  [[nodiscard]] Status replay();

  const LongRun& run_;
  std::vector<std::string> hosts_;
  std::optional<Journal> journal_;
  History history_;
  const std::function<void(const LongDay&)>& on_day_;
  Player* player_ = nullptr;
  Status trouble_;
  std::vector<Act> waiting_;
  std::uint64_t turn_bytes_ = 0;
  Sizes turns_;
  std::uint64_t failed_ = 0, resized_ = 0;
  LongDay day_;
};

void Weeks::every(Duration period, Act act) {
  after(period, [this, period, act] {
    every(period, act);
    (this->*act)();
  });
}

void Weeks::begin(Player& player) {
  player_ = &player;
  every(from_seconds(run_.action_every_s), &Weeks::say_something);
  every(from_seconds(run_.failure_every_s), &Weeks::fail_one);
  every(hours(3) + minutes(7), &Weeks::lose_host);
  every(hours(5) + minutes(11), &Weeks::evict);
  every(hours(7) + minutes(13), &Weeks::resize);
  every(hours(11) + minutes(17), &Weeks::ask_for_restart);
  every(hours(47) + minutes(19), &Weeks::lose_all);
  every(kDay, &Weeks::ask_for_end_of_day);
}

// ------------------------------------------------------- failures and operations

void Weeks::say_something() {
  player_->order(ctl::job::OperatorAsked{
      "note", fmt::format("an operator looked at w{} and left it as it is, since its host says "
                          "that the accelerator is back at its full clocks",
                          rng().below(run_.workers))});
}

void Weeks::fail_one() {
  wire::ProcessExited how;
  const std::uint64_t kind = failed_++ % 4;
  if (kind == 0) how.signal = 9;
  if (kind == 1) how.signal = 11;  // the records that it trained are suspect
  if (kind == 2) how.code = 76;
  if (kind == 3) how.code = 1;
  if (kind != 0) how.last_lines = std::string(4000, 'x') + "\nsomething went wrong\n";
  const auto one = static_cast<std::uint32_t>(rng().below(run_.workers));
  player_->kill({'w', one}, how);
}

void Weeks::lose_host() {
  const std::string host = rng().pick(hosts_);
  player_->lose(host);
  after(minutes(20), [this, host] { player_->welcome(host); });
}

// As when the power of a room fails: training goes on from a checkpoint.
void Weeks::lose_all() {
  for (const std::string& host : hosts_) player_->lose(host);
  after(minutes(5), [this] {
    for (const std::string& host : hosts_) player_->welcome(host);
  });
}

void Weeks::evict() {
  const auto one = rng().below(run_.workers);
  player_->order(ctl::lifecycle::EvictionRequested{
      fmt::format("w{}", one), "an operator wants its host to cool", minutes(5)});
}

void Weeks::resize() {
  const std::uint32_t fewer = run_.workers - std::max(1U, run_.workers / 20);
  player_->order(
      ctl::lifecycle::WorkerCountRequested{++resized_ % 2 == 1 ? fewer : run_.workers, "a test"});
}

// ----------------------------------------------------------------------- its files

void Weeks::end_turn() {
  if (trouble_) trouble_ = commit();
  for (const Act act : std::exchange(waiting_, {})) (this->*act)();
}

Status Weeks::commit() {
  if (journal_->dirty()) turns_.add(std::exchange(turn_bytes_, 0));
  ANTDT_RETURN_IF_ERROR(journal_->commit());
  if (journal_->wants_snapshot()) {
    const auto sections = player_->machine().snapshot();
    day_.snapshot = std::max(day_.snapshot, bytes_of(sections));
    ANTDT_RETURN_IF_ERROR(journal_->snapshot(sections));
  }
  ANTDT_RETURN_IF_ERROR(history_.commit());
  player_->order(ctl::job::HistoryKept{player_->machine().history_mark()});
  day_.state_db =
      std::max(day_.state_db, size_of(path("state.db")) + size_of(path("state.db-wal")));
  day_.history_db =
      std::max(day_.history_db, size_of(path("history.db")) + size_of(path("history.db-wal")));
  return {};
}

Status Weeks::replay() {
  const auto began = std::chrono::steady_clock::now();
  journal_.reset();
  JournalContent content;
  ANTDT_TRY(journal_, Journal::open(path("state.db"), content));
  ANTDT_RETURN_IF_ERROR(player_->restart_job_daemon(content, std::make_unique<Restless>()));
  const Duration took = std::chrono::steady_clock::now() - began;
  day_.replay_s = std::max(day_.replay_s, to_seconds(took));
  ++day_.incarnations;
  return {};
}

void Weeks::restart() {
  if (trouble_) trouble_ = replay();
}

void Weeks::end_day() {
  const ctl::JobReport report = player_->machine().report();
  ++day_.day;
  day_.steps = report.step.value;
  day_.generations = report.generation.value;
  day_.lineages = report.lineage.value;
  day_.actions = report.actions.empty() ? 0 : report.actions.back().number;
  day_.failures = failed_;
  day_.epochs = report.epoch;
  day_.turns = turns_.all();
  day_.turn_p99 = turns_.p99();
  day_.turn_most = turns_.most();
  // One that is written now has what the counts above count.
  day_.snapshot = std::max(day_.snapshot, bytes_of(player_->machine().snapshot()));
  day_.status = ctl::status_json(report).size();
  day_.heap = mallinfo2().uordblks;
  day_.resident = resident_bytes();
  on_day_(day_);
  turns_ = {};
  day_.image = day_.snapshot = day_.state_db = day_.history_db = 0;
  day_.replay_s = 0;
}

}  // namespace

namespace {

// A tmpfs folder, because the cost of a disk's syncs is not measured here.
class Scratch {
 public:
  Scratch() {
    std::string name = "/dev/shm/antdt-weeks-XXXXXX";
    if (mkdtemp(name.data()) != nullptr) path_ = name;
  }
  ~Scratch() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace

Status play(const LongRun& wanted, const std::function<void(const LongDay&)>& on_day) {
  LongRun run = wanted;
  std::optional<Scratch> scratch;
  if (run.directory.empty()) run.directory = scratch.emplace().path();
  if (run.directory.empty()) return fail_errno(ErrorKind::kIo, errno, "a directory in /dev/shm");
  Setup setup;
  setup.machine = machine_of(run);
  setup.workers = run.workers;
  setup.seed = run.seed;
  setup.solution = std::make_unique<Restless>();
  setup.hosts.clear();
  for (std::uint32_t h = 0; h * run.workers_a_host < run.workers; ++h)
    setup.hosts.push_back(fmt::format("tcp://10.0.{}.{}:7700", h / 250, h % 250 + 1));
  setup.limit = from_seconds(run.days * to_seconds(kDay) + 1);
  setup.pace = {seconds(5), seconds(60), seconds(60)};
  JournalContent content;
  ANTDT_TRY(Journal journal, Journal::open(run.directory + "/state.db", content));
  ANTDT_TRY(History history,
            History::open(run.directory + "/history.db", setup.machine.ledger.train, Incarnation{1},
                          run.history_bytes));
  Weeks weeks(run, setup.hosts, std::move(journal), std::move(history), on_day);
  setup.onlooker = &weeks;
  const Steady speeds(run.step_s);
  ANTDT_TRY(const Played played, Player(std::move(setup), speeds).play());
  ANTDT_RETURN_IF_ERROR(weeks.trouble());
  if (!played.ended) return {};
  return fail(ErrorKind::kAborted, "the job ended after {:.1f} days: {}",
              played.report.wall_seconds / to_seconds(kDay), played.report.outcome->first_cause);
}

std::vector<std::string> exceeded(const LongDay& day, const LongRun& run) {
  constexpr std::uint64_t kKiB = 1ULL << 10, kMiB = 1ULL << 20;
  const std::uint64_t workers = run.workers;
  const std::uint64_t image = 64 * kKiB + 600 * workers;
  const std::uint64_t turn = image + 64 * kKiB + 200 * workers;
  const std::uint64_t snapshot = 6 * kMiB + turn + 200 * day.epochs;
  const std::uint64_t wal = 8 * kMiB + snapshot + turn;
  std::vector<std::string> found;
  const auto check = [&](const char* what, std::uint64_t bytes, std::uint64_t bound) {
    if (bytes > bound)
      found.push_back(fmt::format("{}: {} bytes, and the bound is {}", what, bytes, bound));
  };
  check("the image", day.image, image);
  check("a turn", day.turn_most, turn);
  check("a snapshot", day.snapshot, snapshot);
  check("state.db", day.state_db, 2 * snapshot + std::max(4 * kMiB, snapshot) + wal);
  check("history.db", day.history_db, run.history_bytes / 4 * 5 + 16 * kMiB);
  check("the status reply", day.status, 256 * kKiB + 400 * workers);
  check("memory in use", day.heap, 32 * kMiB + 48 * kKiB * workers);
  check("resident memory", day.resident, 128 * kMiB + 96 * kKiB * workers);
  return found;
}

}  // namespace antdt::fleet
