#include "ctl/monitor/monitor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/statistics/median.h"

namespace antdt::ctl {

namespace {

// A verdict or a change of speed must stand out of the noise by this many
// standard errors: with ten thousands of looks a day four are not enough.
constexpr double kChangeErrors = 5.0;
constexpr double kVerdictErrors = 4.0;
// Smaller changes of speed are left to the sliding of the window.
constexpr double kChangeRatio = 1.15;
// Who makes its own step longer by less than this does no harm, however slow it is itself.
constexpr double kLeastHarm = 1.05;
// Relative scatter of one batch: never believed to be less, and assumed while
// there are too few reports to measure it.
constexpr double kLeastScatter = 0.02;
constexpr double kUnknownScatter = 0.2;
// The transient window may be stretched this much to hold enough batches.
constexpr int kStretch = 8;
// Persistent is only what two sets of figures show that have no batch in common, so one batch that
// took long is not.
constexpr std::uint32_t kFigures = 2;
// Below it hops say nothing more; half of that from which on they are measured
// (trainer/worker/member/hop_timer.h), because a window is behind.
constexpr double kCollectiveShare = 1.0 / 16;
constexpr double kMicro = 1e-6;

double seconds_per_sample(const BatchSums& sums) {
  return static_cast<double>(sums.busy_us()) * kMicro / static_cast<double>(sums.samples);
}

double speed_of(const BatchSums& sums) {
  return sums.samples == 0 || sums.busy_us() == 0 ? 0 : 1 / seconds_per_sample(sums);
}

double ratio(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

// Of sorted speeds, one of which is `speed`.
double median_without(const std::vector<double>& speeds, double speed) {
  if (speeds.size() < 2) return speed;
  const auto own = static_cast<std::size_t>(std::lower_bound(speeds.begin(), speeds.end(), speed) -
                                            speeds.begin());
  const auto other = [&](std::size_t i) { return speeds[i < own ? i : i + 1]; };
  const std::size_t count = speeds.size() - 1;
  if (count % 2 == 1) return other(count / 2);
  return (other(count / 2 - 1) + other(count / 2)) / 2;
}

}  // namespace

Duration report_interval(const MonitorConfig& config) {
  return std::clamp<Duration>(config.transient_window / 4, std::chrono::milliseconds(100),
                              std::chrono::seconds(1));
}

Monitor::Monitor(MonitorConfig config) : config_(config) {}

Monitor::Worker Monitor::fresh(const MemberInfo& info) const {
  return Worker{.info = info,
                .recent = SlidingWindow(kStretch * config_.transient_window, 8 * kStretch),
                .lasting = SlidingWindow(config_.persistent_window, 24),
                .last = LastReports(kFigures * config_.min_batches),
                .looks = Looks(config_.transient_window)};
}

void Monitor::set_members(const std::vector<MemberInfo>& members) {
  std::map<WorkerId, Worker> next;
  for (const MemberInfo& info : members) {
    const auto known = workers_.find(info.member.worker);
    if (known != workers_.end() && known->second.info.member == info.member) {
      known->second.info = info;
      known->second.looks.forget_hops();
      next.insert(workers_.extract(known));
    } else {
      next.emplace(info.member.worker, fresh(info));
    }
  }
  workers_ = std::move(next);
}

void Monitor::step(const Observation& observation, MonoTime now) {
  const auto found = workers_.find(observation.member.worker);
  if (found == workers_.end() || found->second.info.member != observation.member) return;
  Worker& worker = found->second;
  const wire::Report& sum = observation.metrics.sum;
  worker.samples_total = std::max(worker.samples_total, sum.samples_total);
  worker.looks.add(observation.metrics, now);
  if (sum.max_micro_batch != 0) {
    std::uint32_t& limit = worker.info.device.max_micro_batch;
    limit = limit == 0 ? sum.max_micro_batch : std::min(limit, sum.max_micro_batch);
  }
  if (sum.batches == 0 || sum.data_us + sum.compute_us == 0) return;
  // Who does not know how many samples its batches have is compared by batches.
  const std::uint64_t samples = sum.samples > 0 ? sum.samples : sum.batches;
  const BatchSums sums{sum.batches, samples, sum.data_us, sum.compute_us, sum.wait_us};
  worker.lasting.add(sums, now);
  if (now - std::chrono::milliseconds(observation.metrics.window_ms) < worker.cut) return;
  worker.recent.add(sums, now);
  worker.last.add(sums, now);
  const double batches = sum.batches;
  worker.scatter.add(seconds_per_sample(sums), batches);
  if (now - std::chrono::milliseconds(observation.metrics.window_ms) < worker.changed) return;
  worker.line.add(static_cast<double>(sums.samples) / batches,
                  static_cast<double>(sums.busy_us()) * kMicro / batches, batches);
  write_down(worker, sums);
}

// Batches of another plan than we know of say nothing of its micro-batches. In a shared step the
// samples are those that the worker computed, in runs of several sizes: counted as micro-batches of
// its plan, they say what such a micro-batch costs there.
void Monitor::write_down(Worker& worker, const BatchSums& sums) const {
  const std::uint64_t part = std::uint64_t{worker.micro_batch} * worker.accumulation;
  if (part == 0 || (!config_.share_steps && sums.samples != sums.batches * part)) return;
  const double micro_batches = static_cast<double>(sums.samples) / worker.micro_batch;
  worker.book.add(worker.micro_batch, micro_batches, static_cast<double>(sums.busy_us()) * kMicro);
}

void Monitor::plan_changed(MonoTime now, const wire::Plan& plan) {
  for (auto& [id, worker] : workers_) {
    worker.cut = now;
    worker.recent.forget_before(now + worker.recent.span());
    worker.last.clear();
  }
  for (const wire::PlanEntry& entry : plan.entries) {
    const auto found = workers_.find(entry.worker);
    if (found == workers_.end()) continue;
    found->second.micro_batch = entry.micro_batch;
    found->second.accumulation = entry.accumulation;
  }
}

std::vector<DeviceCurve> Monitor::curves() const {
  std::map<std::string_view, std::vector<const CurveBook*>> books;
  std::map<std::string_view, std::uint32_t> limits;
  for (const auto& [id, worker] : workers_) {
    const std::string& name = curve_class(worker.info.device.name, worker.info.host);
    books[name].push_back(&worker.book);
    std::uint32_t& limit = limits[name];
    const std::uint32_t own = worker.info.device.max_micro_batch;
    limit = limit == 0 || own == 0 ? std::max(limit, own) : std::min(limit, own);
  }
  std::vector<DeviceCurve> curves;
  for (const auto& [name, of_class] : books)
    curves.push_back({std::string(name), common_points(of_class), limits[name]});
  return curves;
}

// Of each worker by its own reports, but never less than the median of all: a
// few reports may agree by chance.
std::vector<double> Monitor::scatters() const {
  std::vector<double> own;
  std::vector<double> known;
  for (const auto& [id, worker] : workers_) {
    const auto scatter = worker.scatter.per_batch();
    own.push_back(scatter.value_or(0));
    if (scatter) known.push_back(*scatter);
  }
  const double usual =
      known.empty() ? kUnknownScatter : std::max(median(std::move(known)), kLeastScatter);
  for (double& scatter : own) scatter = std::max(scatter, usual);
  return own;
}

std::uint64_t Monitor::enough_batches(double scatter) const {
  const double needed = scatter / config_.precision;
  return std::max<std::uint64_t>(config_.min_batches,
                                 static_cast<std::uint64_t>(std::ceil(needed * needed)));
}

// Whether what was reported in the last `newest` differs from what came before
// it by more than noise.
bool Monitor::changed_within(const Worker& worker, Duration newest, double scatter,
                             MonoTime now) const {
  const BatchSums all =
      worker.recent.at_least(enough_batches(scatter), 2 * config_.transient_window, now).sums;
  const BatchSums late = worker.recent.at_least(config_.min_batches, newest, now).sums;
  const BatchSums early{all.batches - late.batches, all.samples - late.samples,
                        all.data_us - late.data_us, all.compute_us - late.compute_us, 0};
  if (early.batches < config_.min_batches || late.batches < config_.min_batches) return false;
  const double change = std::abs(std::log(seconds_per_sample(late) / seconds_per_sample(early)));
  const double error = scatter * std::sqrt(1 / static_cast<double>(early.batches) +
                                           1 / static_cast<double>(late.batches));
  return change > std::max(std::log(kChangeRatio), kChangeErrors * error);
}

// A short stretch shows a great change early, a longer one a small change surely.
void Monitor::forget_before_change(Worker& worker, double scatter, MonoTime now) const {
  const Duration window = config_.transient_window;
  for (const Duration newest : {window / 4, window / 2, window}) {
    if (!changed_within(worker, newest, scatter, now)) continue;
    const MonoTime from = worker.recent.at_least(config_.min_batches, newest, now).from;
    worker.recent.forget_before(from);
    worker.last.forget_before(from);
    worker.line = {};
    worker.book.clear();
    // One change may be seen in several pieces: its beginning counts.
    if (now - worker.changed > window) worker.changed = now;
    return;
  }
}

// The newest `batches` of the reports, in at least `length` of the window. Where steps are so long
// that the window holds too few of them, reports that have left it.
SlidingWindow::Stretch Monitor::newest_of(const Worker& worker, const SlidingWindow& window,
                                          std::uint64_t batches, Duration length,
                                          MonoTime now) const {
  const auto in_window = window.at_least(batches, length, now);
  if (in_window.sums.batches >= config_.min_batches) return in_window;
  const auto reported = worker.last.at_least(batches, now);
  return reported.sums.batches > in_window.sums.batches ? reported : in_window;
}

// How long so many batches take of the worker, waiting included.
Duration Monitor::time_of(std::uint32_t batches, const WorkerView& out) {
  return from_seconds(batches * (out.batch_s + out.wait_s()));
}

Duration Monitor::transient_window(const WorkerView& out) const {
  return std::max(config_.transient_window, time_of(config_.min_batches, out));
}

Duration Monitor::persistent_window(const WorkerView& out) const {
  return std::max(config_.persistent_window, time_of(kFigures * config_.min_batches, out));
}

WorkerView Monitor::measure(Worker& worker, double scatter, MonoTime now) const {
  forget_before_change(worker, scatter, now);
  WorkerView out;
  out.member = worker.info.member;
  out.host = worker.info.host;
  out.device_class = worker.info.device.name;
  out.max_micro_batch = worker.info.device.max_micro_batch;
  out.samples_total = worker.samples_total;
  const auto [sums, from] =
      newest_of(worker, worker.recent, enough_batches(scatter), config_.transient_window, now);
  worker.figures_from = from;
  const BatchSums lasting = newest_of(worker, worker.lasting, kFigures * config_.min_batches,
                                      config_.persistent_window, now)
                                .sums;
  out.speed_persistent = speed_of(lasting);
  out.speed_transient = speed_of(sums);
  out.batches = sums.batches;
  out.measured = sums.batches >= config_.min_batches;
  out.changing = now - worker.changed < config_.transient_window / 2;
  if (sums.batches == 0) return out;
  if (out.measured && !worker.first) worker.first = now;
  out.batch_s = static_cast<double>(sums.busy_us()) * kMicro / static_cast<double>(sums.batches);
  out.data_share = ratio(sums.data_us, sums.busy_us());
  out.wait_share = ratio(sums.wait_us, sums.busy_us() + sums.wait_us);
  out.speed_error = scatter / std::sqrt(static_cast<double>(sums.batches));
  if (const auto fit = worker.line.fit(scatter)) {
    const double size = static_cast<double>(sums.samples) / static_cast<double>(sums.batches);
    const double expected = fit->fixed_s + fit->per_sample_s * size;
    if (std::abs(expected - out.batch_s) < 0.1 * out.batch_s) out.fit = fit;
  }
  return out;
}

// How far a worker is a straggler, as the logarithm of a slowdown: that of its own time, or what
// that makes of a step where a step is mostly something else. Scaled so that kLeastHarm to a
// step is as much as the straggler ratio to its own time.
double Monitor::slowness(const WorkerView& out, double shared_wait_s) const {
  const double severity = out.verdict.severity;
  const double at_peers_speed = out.batch_s / severity;
  const double of_step = (out.batch_s + shared_wait_s) / (at_peers_speed + shared_wait_s);
  return std::min(std::log(severity),
                  std::log(of_step) * std::log(config_.straggler_ratio) / std::log(kLeastHarm));
}

void Monitor::judge(Worker& worker, WorkerView& out, const Peers& peers, MonoTime now) const {
  if (!out.measured || peers.speeds.size() < 2) return;
  out.verdict.severity = median_without(peers.speeds, out.speed_transient) / out.speed_transient;
  const double needed =
      std::max(std::log(config_.straggler_ratio), kVerdictErrors * out.speed_error);
  const auto remember = [&](std::optional<MonoTime>& since, double amount) {
    if (amount > needed && !since) since = now;
    if (amount < std::log(config_.release_ratio)) since.reset();
  };
  remember(worker.slow_since, slowness(out, peers.shared_wait_s));
  const double at_most = std::log(out.verdict.severity) + kVerdictErrors * out.speed_error;
  worker.kept_up = worker.kept_up || at_most < std::log(config_.straggler_ratio);
  remember(worker.fast_since, -std::log(out.verdict.severity));
  worker.named = worker.named && worker.slow_since;
  if (!worker.slow_since && worker.fast_since) {
    out.verdict.kind = VerdictKind::kLeader;
    out.verdict.since = *worker.fast_since;
  }
}

// Between the processes of one host the scheduler chooses who waits for a CPU. A difference that it
// may have made must last; one that its host has not been looked at during is not judged yet. Who
// is as fast as the others on its host is slow because the host is.
bool Monitor::may_be_chance(const Worker& worker, const WorkerView& out, const Peers& peers,
                            MonoTime now) const {
  if (now - *worker.slow_since >= persistent_window(out)) return false;
  const std::vector<double>& here = peers.by_host.at(worker.info.host);
  const double severity = median_without(here, out.speed_transient) / out.speed_transient;
  if (severity < config_.release_ratio) return false;
  if (!worker.looks.seen_since(worker.figures_from, now)) return true;
  return shortage_explains(severity, 1 - out.wait_share,
                           worker.looks.signs(worker.figures_from, now), peers.signs);
}

void Monitor::say_since(const Worker& worker, MonoTime since, WorkerView& out, MonoTime now) const {
  Verdict& verdict = out.verdict;
  const bool lasts = now - since >= persistent_window(out);
  const bool always = !worker.kept_up && since <= *worker.first + 2 * transient_window(out);
  verdict.kind = !lasts   ? VerdictKind::kTransient
                 : always ? VerdictKind::kDeterministic
                          : VerdictKind::kPersistent;
  verdict.since = since;
}

void Monitor::name_all(std::vector<WorkerView>& views, Peers& peers, MonoTime now) {
  if (std::ranges::none_of(workers_, [](const auto& w) { return w.second.slow_since.has_value(); }))
    return;
  peers.signs = usual_of(now);
  auto out = views.begin();
  for (auto& [id, worker] : workers_) {
    WorkerView& view = *out++;
    if (!worker.slow_since || !view.measured || peers.speeds.size() < 2) continue;
    worker.named = worker.named || !may_be_chance(worker, view, peers, now);
    if (!worker.named) continue;
    say_since(worker, *worker.slow_since, view, now);
    Explained found = explain(worker, view, peers, now);
    view.verdict.cause = found.cause;
    view.verdict.seen = std::move(found.seen);
  }
}

Explained Monitor::explain(const Worker& worker, const WorkerView& out, const Peers& peers,
                           MonoTime now) const {
  const double own = 1 / out.speed_transient;
  Explained found = explain_slowness({own * out.data_share, own * (1 - out.data_share),
                                      peers.data_s, peers.compute_s, 1 - out.wait_share},
                                     worker.looks.signs(worker.changed, now), peers.signs);
  if (found.cause == Cause::kCompute && device_is_slower(worker, out, peers)) {
    found.cause = Cause::kDevice;
    found.seen = fmt::format("its device is a '{}'; {}", worker.info.device.name, found.seen);
  }
  return found;
}

// Slow from the beginning, and not slower than those that have the same device.
bool Monitor::device_is_slower(const Worker& worker, const WorkerView& out,
                               const Peers& peers) const {
  if (worker.kept_up || *worker.slow_since > *worker.first + 2 * transient_window(out)) {
    return false;
  }
  const auto alike = peers.by_class.find(worker.info.device.name);
  if (alike == peers.by_class.end() || peers.by_class.size() < 2) return false;
  const std::vector<double>& speeds = alike->second;
  return speeds[speeds.size() / 2] < config_.straggler_ratio * out.speed_transient;
}

HostSigns Monitor::usual_of(MonoTime now) const {
  std::vector<HostSigns> all;
  for (const auto& [id, worker] : workers_) all.push_back(worker.looks.signs(worker.changed, now));
  return usual_signs(all);
}

// The members in the order of their ranks; of workers around servers by id. Nothing: the
// ranks make no ring.
std::vector<Monitor::Judged> Monitor::in_order(std::vector<WorkerView>& views) {
  std::vector<Judged> all(workers_.size());
  auto view = views.begin();
  for (auto& [id, worker] : workers_) {
    const auto place = static_cast<std::size_t>(view - views.begin());
    const std::size_t rank = worker.info.rank.value_or(place);
    if (rank >= all.size() || all[rank].worker != nullptr) return {};
    all[rank] = {&worker, &*view++};
  }
  return all;
}

// What a step of a ring waits for that nobody computes: the member that waits least waits
// for the collective alone. Around servers each worker waits for its own link.
void Monitor::judge_links(std::vector<WorkerView>& views, MonoTime now) {
  const std::vector<Judged> all = in_order(views);
  if (all.empty()) return;
  const bool ring = all.front().worker->info.rank.has_value();
  const double collective_s = shared_wait_s(views);
  double share = 1;  // that the collective has of a step
  for (const Judged& each : all) {
    if (each.view->measured) share = std::min(share, each.view->wait_share);
  }
  std::vector<Hop> hops;
  for (const Judged& each : all) {
    // Nothing is measured while somebody computes all the time, so what was before that is
    // not to explain why everybody waits after it.
    if (ring && share < kCollectiveShare) each.worker->looks.forget_hops();
    hops.push_back(each.worker->looks.hop(now));
  }
  std::vector<std::optional<SlowLink>> links(all.size());
  for (const SlowLink& link : ring ? find_slow_links(hops) : find_slow_spokes(hops)) {
    links[link.rank] = link;
  }
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const auto& [worker, out] = all[rank];
    const std::optional<SlowLink>& link = links[rank];
    const double waited_s = out->wait_s();
    const double severity = link && out->measured ? slowdown_by(*link, out->batch_s + waited_s,
                                                                ring ? collective_s : waited_s)
                                                  : 1;
    if (severity < config_.release_ratio) worker->link_slow_since.reset();
    if (severity >= config_.straggler_ratio && !worker->link_slow_since)
      worker->link_slow_since = now;
    // Who is slow itself is named for that.
    if (!worker->link_slow_since || worker->slow_since) continue;
    const std::string where = !ring ? "from it to a server and back"
                              : link->with
                                  ? fmt::format("between it and {}, there and back,",
                                                all[*link->with].worker->info.member.worker)
                                  : "to a neighbour and back on both its links";
    say_since(*worker, *worker->link_slow_since, *out, now);
    out->verdict.severity = severity;
    out->verdict.cause = Cause::kNetwork;
    out->verdict.seen = fmt::format("a message {} takes {:.3g} ms, {:.3g} ms among others", where,
                                    1e3 * link->hop_s, 1e3 * link->usual_s);
  }
}

std::vector<WorkerView> Monitor::view(MonoTime now) {
  std::vector<WorkerView> views;
  views.reserve(workers_.size());
  Peers peers;
  std::vector<double> data;
  std::vector<double> compute;
  const std::vector<double> scatter = scatters();
  for (auto& [id, worker] : workers_) {
    views.push_back(measure(worker, scatter[views.size()], now));
    const WorkerView& out = views.back();
    if (!out.measured) continue;
    peers.speeds.push_back(out.speed_transient);
    data.push_back(out.data_share / out.speed_transient);
    compute.push_back((1 - out.data_share) / out.speed_transient);
    const std::string& device = worker.info.device.name;
    if (!device.empty()) peers.by_class[device].push_back(out.speed_transient);
    peers.by_host[worker.info.host].push_back(out.speed_transient);
  }
  for (auto& [host, speeds] : peers.by_host) std::sort(speeds.begin(), speeds.end());
  for (auto& [device, speeds] : peers.by_class) std::sort(speeds.begin(), speeds.end());
  std::sort(peers.speeds.begin(), peers.speeds.end());
  peers.shared_wait_s = shared_wait_s(views);
  peers.data_s = median(std::move(data));
  peers.compute_s = median(std::move(compute));
  auto out = views.begin();
  for (auto& [id, worker] : workers_) judge(worker, *out++, peers, now);
  name_all(views, peers, now);
  judge_links(views, now);
  return views;
}

}  // namespace antdt::ctl
