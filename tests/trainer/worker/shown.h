// How transcripts show the effects of the machines of both kinds of worker.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>

#include "tests/transcript/transcript.h"
#include "trainer/worker/member/effects.h"
#include "trainer/worker/member/inputs.h"

namespace antdt::worker {

using transcript::Line;

inline std::uint64_t after_letter(const std::string& text) {
  if (text.size() < 2) throw std::runtime_error("no number in " + text);
  return std::stoull(text.substr(1));
}
inline WorkerId worker_of(const std::string& text) { return parse_worker_id(text).value(); }
// The first word of an order, such as "g1".
inline Generation generation_of(const Line& line) { return Generation{after_letter(line.word(0))}; }

// heard [plan=N] [checkpoint=N] [leave=CODE] [regroup] [stop] [over]
inline Heard heard_of(const Line& line) {
  Heard heard;
  heard.job.plan = PlanVersion{line.number("plan", 0)};
  heard.job.checkpoint = line.number("checkpoint", 0);
  if (line.text("leave")) heard.job.leave = static_cast<std::uint32_t>(line.number("leave", 0));
  heard.job.regroup = line.has("regroup");
  heard.stop = line.has("stop");
  heard.over = line.has("over");
  heard.ends = line.text("ends", "");
  return heard;
}
// plan N share=MICRO_BATCHxTIMES
inline wire::Plan plan_of(const Line& line, PlanVersion version, WorkerId self) {
  const std::string share = line.text("share", "10x1");
  const auto cross = share.find('x');
  wire::Plan plan{version,
                  {{self, static_cast<std::uint32_t>(std::stoul(share.substr(0, cross))),
                    static_cast<std::uint32_t>(std::stoul(share.substr(cross + 1)))}},
                  line.real("rate", 1)};
  const double threshold = line.real("threshold", -1);
  if (threshold >= 0) plan.threshold = threshold;
  return plan;
}
// evaluated records=N | end | wait
inline BatchEvaluated evaluated_of(const Line& line) {
  BatchEvaluated evaluated;
  evaluated.records = line.number("records", 0);
  if (evaluated.records > 0) evaluated.status = client::TakeStatus::kData;
  if (line.has("end")) evaluated.status = client::TakeStatus::kEnd;
  static_cast<void>(line.has("wait"));
  evaluated.partial.records = evaluated.records;
  return evaluated;
}

inline std::string show(const SpendTime& e) {
  return fmt::format("time goes to {}", name_of(e.use));
}
inline std::string show(const StartReading& e) {
  return e.data == Data::kTrain ? "read training data" : "read evaluation data";
}
inline std::string show(const StopReading&) { return "stop reading"; }
inline std::string show(const Exit& e) { return fmt::format("exit {}", e.code); }
inline std::string show(const GiveUp& e) { return "give up: " + e.error.message; }
inline std::string show(const AwaitRecords&) { return "AWAIT RECORDS"; }
inline std::string show(const EvaluateBatch& e) {
  return fmt::format("EVALUATE {} records", e.records);
}
inline std::string show(const client::BeginPhase& m) { return fmt::format("phase {}", m.phase); }
inline std::string show(const client::SetHold& m) { return fmt::format("hold {}", m.records); }
inline std::string show(const client::Commit& m) { return fmt::format("commit {}", m.place); }
inline std::string show(const client::GiveBack& m) {
  return fmt::format("give back {} records", m.records);
}
inline std::string show(const client::Skip& m) {
  std::string shown = "skip";
  for (const wire::SkippedRecords& s : m.records) {
    shown += fmt::format(" {}:{} ({})", s.from, s.to, s.reason);
  }
  return shown;
}
inline std::string show(const client::BatchTimes& m) {
  const std::string waits = m.wait < std::chrono::milliseconds(1)
                                ? ""
                                : fmt::format(", waits {:.0f} ms", 1e3 * to_seconds(m.wait));
  return fmt::format("report {} samples{}{}{}{}", m.samples, waits,
                     m.of_others == 0 ? "" : fmt::format(", {} of others", m.of_others),
                     m.counts ? "" : ", not counted", m.in_model ? "" : ", not in the model");
}
inline std::string show(const wire::Progress& m) {
  const std::string visit =
      !m.visit ? ""
               : fmt::format(", visit of step {}: {} steps under {}, {} and {} of {} right",
                             m.visit->step, m.visit->steps, m.visit->threshold, m.visit->own_right,
                             m.visit->guest_right, m.visit->records);
  return fmt::format("progress: step {}, {} stable, {} of all, plan {}{}{}", m.step, m.place,
                     m.samples, m.plan, m.done ? ", done" : "", visit);
}

}  // namespace antdt::worker
