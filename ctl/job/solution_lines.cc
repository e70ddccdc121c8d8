#include "ctl/job/solution_lines.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

namespace antdt::ctl {
namespace {

using Json = nlohmann::ordered_json;
constexpr std::size_t kMostActions = 64;
constexpr std::size_t kLongestReason = 500;

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}
Json seconds_or_null(const std::optional<Duration>& value) {
  return value ? Json(to_seconds(*value)) : Json();
}

Json to_json(const Verdict& v, MonoTime now) {
  const bool deviates = v.kind != VerdictKind::kNone;
  return {{"kind", to_string(v.kind)},
          {"severity", v.severity},
          {"cause", to_string(v.cause)},
          {"seen", v.seen},
          {"for_s", deviates ? to_seconds(now - v.since) : 0.0}};
}

Json to_json(const WorkerView& w, MonoTime now) {
  Json fit;
  if (w.fit) fit = {{"fixed_s", w.fit->fixed_s}, {"per_sample_s", w.fit->per_sample_s}};
  return {{"worker", to_string(w.member.worker)},
          {"attempt", w.member.attempt.value},
          {"host", w.host},
          {"device_class", w.device_class},
          {"max_micro_batch", w.max_micro_batch},
          {"samples_a_step", w.share},
          {"micro_batch", w.micro_batch},
          {"measured", w.measured},
          {"changing", w.changing},
          {"samples_per_second", w.speed_transient},
          {"samples_per_second_persistent", w.speed_persistent},
          {"error", w.speed_error},
          {"batch_s", w.batch_s},
          {"data_share", w.data_share},
          {"wait_share", w.wait_share},
          {"batches", w.batches},
          {"samples_total", w.samples_total},
          {"fit", fit},
          {"verdict", to_json(w.verdict, now)}};
}

Json to_json(const ServerView& s, MonoTime now) {
  return {{"server", to_string(s.member.worker)},
          {"attempt", s.member.attempt.value},
          {"host", s.host},
          {"role", name_of(s.role)},
          {"measured", s.measured},
          {"service_us", s.service_us},
          {"service_us_persistent", s.service_us_persistent},
          {"busy_share", s.busy_share},
          {"verdict", to_json(s.verdict, now)}};
}

Json to_json(const DeviceCurve& curve) {
  Json points = Json::array();
  for (const DeviceCurve::Point& p : curve.points) {
    points.push_back({{"samples", p.samples}, {"seconds", p.seconds}});
  }
  return {{"device_class", curve.device_class},
          {"max_micro_batch", curve.max_batch},
          {"points", std::move(points)}};
}

tl::unexpected<Error> wrong(const std::string& what) {
  return ::antdt::fail(ErrorKind::kUsage, "said {}", what);
}

// As much as the record keeps, cut between characters (the text is valid UTF-8).
std::string beginning_of(std::string text) {
  std::size_t end = std::min(text.size(), kLongestReason);
  while (end > 0 && end < text.size() && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) {
    --end;
  }
  text.resize(end);
  return text;
}

// What a program wrote, quoted for a message.
std::string shown(std::string_view text) {
  std::string out(text.substr(0, 80));
  std::ranges::replace_if(
      out, [](unsigned char c) { return c < 0x20 || c > 0x7e; }, '?');
  return text.size() > 80 ? out + "…" : out;
}

Result<std::uint32_t> whole_number(const Json& from, const char* key, std::uint64_t least,
                                   std::uint64_t most) {
  const auto found = from.find(key);
  const bool there = found != from.end() && found->is_number_unsigned();
  if (!there || found->get<std::uint64_t>() < least || found->get<std::uint64_t>() > most) {
    return wrong(fmt::format("no \"{}\" from {} to {}, a whole number, in {}", key, least, most,
                             shown(from.dump())));
  }
  return found->get<std::uint32_t>();
}

class Parser {
 public:
  explicit Parser(const ClusterView& view) : view_(view) {
    for (const WorkerView& w : view.workers) workers_.emplace(to_string(w.member.worker), w.member);
  }

  Result<Action> action(const Json& from) const {
    const auto kind = from.is_object() ? from.find("kind") : from.end();
    if (!from.is_object() || kind == from.end() || !kind->is_string()) {
      return wrong(fmt::format("an action without a \"kind\": {}", shown(from.dump())));
    }
    const std::string name = kind->get<std::string>();
    if (name == "adjust-batch") return adjust_batch(from);
    if (name == "backup-workers") {
      const std::size_t most = std::max<std::size_t>(view_.workers.size(), 1) - 1;
      ANTDT_TRY(const std::uint32_t count, whole_number(from, "count", 0, most));
      return BackupWorkers{count};
    }
    if (name == "adjust-learning-rate") {
      const auto factor = from.find("factor");
      if (factor != from.end() && factor->is_number()) {
        return AdjustLearningRate{factor->get<double>()};
      }
      return wrong(fmt::format("no \"factor\" that is a number in {}", shown(from.dump())));
    }
    if (name == "set-sync") {
      const auto threshold = from.find("threshold");
      if (threshold != from.end() && threshold->is_number()) {
        return SetSync{threshold->get<double>()};
      }
      return wrong(fmt::format("no \"threshold\" that is a number in {}", shown(from.dump())));
    }
    if (name == "resize") {
      ANTDT_TRY(const std::uint32_t count, whole_number(from, "count", 1, 100'000));
      return Resize{count};
    }
    if (name == "kill-restart" || name == "evict") {
      ANTDT_TRY(const Member member, process(from, "worker"));
      if (name == "evict") return Evict{member};
      return KillRestart{member};
    }
    return wrong(
        fmt::format("\"{}\", which is no kind of action: adjust-batch, adjust-learning-rate, "
                    "backup-workers, set-sync, kill-restart, evict and resize are",
                    shown(name)));
  }

 private:
  Result<Member> worker(const Json& from, const char* key) const {
    const auto found = from.find(key);
    if (found != from.end() && found->is_string()) {
      const auto known = workers_.find(found->get<std::string>());
      if (known != workers_.end()) return known->second;
    }
    return wrong(
        fmt::format("no \"{}\" that is one of the view's workers in {}", key, shown(from.dump())));
  }

  // Reads the id of a worker or a parameter server.
  Result<Member> process(const Json& from, const char* key) const {
    const auto found = from.find(key);
    if (found != from.end() && found->is_string()) {
      for (const ServerView& s : view_.servers) {
        if (to_string(s.member.worker) == found->get<std::string>()) return s.member;
      }
    }
    return worker(from, key);
  }

  Result<Share> share(Member member, const Json& from) const {
    const std::uint64_t most = std::max<std::uint32_t>(view_.rules.global_batch, 1);
    Share share;
    share.worker = member.worker;
    if (!from.is_object()) {
      ANTDT_TRY(share.samples, whole_number({{"samples", from}}, "samples", 0, most));
      return share;
    }
    ANTDT_TRY(share.micro_batch, whole_number(from, "micro_batch", 1, most));
    ANTDT_TRY(share.accumulation, whole_number(from, "accumulation", 1, most / share.micro_batch));
    share.samples = share.micro_batch * share.accumulation;
    return share;
  }

  Result<Action> adjust_batch(const Json& from) const {
    const auto parts = from.find("shares");
    if (parts == from.end() || !parts->is_object() || parts->size() != workers_.size()) {
      return wrong(fmt::format(
          "an adjust-batch whose \"shares\" are not those of all {} workers of the view",
          workers_.size()));
    }
    AdjustBatch action;
    std::size_t with_micro_batch = 0;
    for (const auto& [id, member] : workers_) {
      const auto part = parts->find(id);
      if (part == parts->end()) return wrong(fmt::format("an adjust-batch without {}", id));
      ANTDT_TRY(const Share s, share(member, *part));
      with_micro_batch += s.micro_batch > 0 ? 1 : 0;
      action.shares.push_back(s);
    }
    if (with_micro_batch != 0 && with_micro_batch != action.shares.size()) {
      return wrong("an adjust-batch in which only some workers have a micro_batch");
    }
    const Member first = workers_.empty() ? Member{} : workers_.begin()->second;
    action.because_of = first.worker;
    if (from.contains("because_of")) {
      ANTDT_TRY(const Member because, worker(from, "because_of"));
      action.because_of = because.worker;
    }
    return action;
  }

  const ClusterView& view_;
  std::map<std::string, Member, std::less<>> workers_;
};

}  // namespace

std::string view_line(const ClusterView& view, std::uint64_t number, double time_s, MonoTime now) {
  Json workers = Json::array(), servers = Json::array(), places = Json::array(),
       curves = Json::array();
  for (const WorkerView& w : view.workers) workers.push_back(to_json(w, now));
  for (const PlaceView& p : view.places) places.push_back({{"host", p.host}, {"room", p.room}});
  for (const ServerView& s : view.servers) servers.push_back(to_json(s, now));
  for (const DeviceCurve& c : view.curves) curves.push_back(to_json(c));
  const Json line = {{"schema", kSolutionLines},
                     {"view", number},
                     {"time_s", time_s},
                     {"plan", view.plan.value},
                     {"rules",
                      {{"global_batch", view.rules.global_batch},
                       {"adjust", name_of(view.rules.adjust)},
                       {"multiple_of", view.rules.multiple_of},
                       {"min", view.rules.min},
                       {"max", view.rules.max}}},
                     {"transient_window_s", to_seconds(view.transient_window)},
                     {"persistent_window_s", to_seconds(view.persistent_window)},
                     {"samples_remaining", or_null(view.remaining)},
                     {"backup_workers", or_null(view.backups)},
                     {"learning_rate", view.learning_rate},
                     {"threshold", or_null(view.threshold)},
                     {"optimizer", view.optimizer},
                     {"pending_s", seconds_or_null(view.pending_time)},
                     {"restart_s", seconds_or_null(view.restart_time)},
                     {"places", std::move(places)},
                     {"workers", std::move(workers)},
                     {"servers", std::move(servers)},
                     {"curves", std::move(curves)}};
  return line.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::size_t longest_decision(const ClusterView& view) { return 65'536 + 256 * view.workers.size(); }

Result<Decision> parse_decision(std::string_view line, const ClusterView& view,
                                std::uint64_t number) {
  const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) {
    return wrong(fmt::format("what is no JSON object on one line: {}", shown(line)));
  }
  const auto answers = json.find("view");
  if (answers == json.end() || !answers->is_number_unsigned() ||
      answers->get<std::uint64_t>() != number) {
    return wrong(fmt::format("an answer that is not to \"view\": {}, which it was shown: {}",
                             number, shown(line)));
  }
  Decision decision;
  if (const auto reason = json.find("reason"); reason != json.end() && reason->is_string()) {
    decision.reason = beginning_of(reason->get<std::string>());
    std::ranges::replace_if(
        decision.reason, [](unsigned char c) { return c < 0x20 || c == 0x7f; }, ' ');
  }
  if (decision.reason.empty()) decision.reason = "the job's own program gave no reason";
  const auto actions = json.find("actions");
  if (actions == json.end()) return decision;
  if (!actions->is_array() || actions->size() > kMostActions) {
    return wrong(fmt::format("\"actions\" that are no list of {} at most", kMostActions));
  }
  const Parser parser(view);
  for (const Json& from : *actions) {
    ANTDT_TRY(Action action, parser.action(from));
    decision.actions.push_back(std::move(action));
  }
  return decision;
}

}  // namespace antdt::ctl
