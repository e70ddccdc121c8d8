// Transcripts of who trains together.
//
//   job [patience=TIME] [key=N]
//   expect [HOST:] MEMBER ...        the processes that there are; hosts in the order of ranks
//   join MEMBER ... [base=G] [gen=G] [data=NAME] [problem=yes] [unreadable=FILE]
//       base: the generation whose training state it holds, if not that which goes on.
//       gen: the newest that it has heard of, if not the newest that there is.
//       problem: it could not connect
//   address MEMBER ... [gen=G]
//   ready MEMBER ... step=N [hash=N] [phase=N] [at=WORKER:PLACE,...] [gen=G]
//   gone MEMBER [in-order] [suspect] REASON
//   stuck REASON
//   begin lineage=N [restore=DIRECTORY]    training begins, perhaps from a checkpoint
//   no-disk REASON    nobody waits for a disk in the formation that stands
//   tick
//   restart       a new job daemon, with the image that was written when the last generation
//                 began or settled, or training began
//   state         shows where the machine is, and who is waited for
//
// Generations are written g1, g2, ...
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "core/overloaded.h"
#include "ctl/membership/membership.h"
#include "tests/transcript/transcript.h"

namespace antdt::ctl::membership {
namespace {

using transcript::Line;

class MembershipScript : public transcript::Machine {
 public:
  explicit MembershipScript(const Line& job)
      : patience_(job.duration("patience", std::chrono::seconds(120))) {}

  std::vector<std::string> run(const Line& line, MonoTime now) override {
    if (line.what() == "state") return state();
    if (line.what() == "restart") {
      membership_ = Membership(crypto::Secret(), patience_);
      membership_.restore(written_);
      return {};
    }
    std::vector<std::string> shown;
    for (const Input& event : events_of(line)) {
      Effects effects;
      membership_.step(event, now, effects);
      bool durable = std::holds_alternative<TrainingBegun>(event);
      for (const Effect& effect : effects) {
        shown.push_back(show_effect(effect));
        durable = durable || std::holds_alternative<PersistGeneration>(effect) ||
                  std::holds_alternative<SettleGeneration>(effect);
      }
      if (durable) written_ = membership_.image();
    }
    return shown;
  }

 private:
  // ------------------------------------------------------------- what happens

  std::vector<Input> events_of(const Line& line) {
    const std::string& what = line.what();
    if (what == "expect") return {expect(line)};
    if (what == "stuck") return {CollectiveStuck{line.rest(0)}};
    if (what == "no-disk") return {FormationStuck{line.rest(0)}};
    if (what == "tick") return {TimePassed{}};
    if (what == "begin")
      return {TrainingBegun{Lineage{line.number("lineage", 1)}, line.text("restore", "")}};
    if (what == "gone") return {gone(line)};
    std::vector<Input> events;
    const Generation generation{line.number("gen", membership_.generation().value)};
    for (const Member member : line.members()) {
      if (what == "join") {
        events.emplace_back(MemberJoined{member, generation, join(line)});
      } else if (what == "address") {
        events.emplace_back(
            AddressArrived{member, generation, {fmt::format("at {}", member.worker)}});
      } else if (what == "ready") {
        events.emplace_back(ReadyArrived{member, generation, ready(line)});
      }
    }
    if (events.empty()) throw std::runtime_error("no event: " + what);
    return events;
  }

  static MembersExpected expect(const Line& line) {
    MembersExpected expect;
    std::string host;
    std::uint32_t order = 0;
    for (std::size_t i = 0; i < line.words(); ++i) {
      if (line.word(i).ends_with(':')) {
        host = line.word(i).substr(0, line.word(i).size() - 1);
        ++order;
      } else {
        expect.members.push_back({transcript::member_of(line.word(i)), host, order});
      }
    }
    return expect;
  }
  static MemberGone gone(const Line& line) {
    MemberGone gone;
    gone.member = transcript::member_of(line.word(0));
    gone.in_order = line.has("in-order");
    gone.suspect = line.has("suspect");
    gone.reason = line.rest(1 + std::size_t{gone.in_order} + std::size_t{gone.suspect});
    return gone;
  }
  wire::Join join(const Line& line) const {
    wire::Join join;
    const std::string data = line.text("data", "tally");
    join.data.train_records = 1000;
    join.data.fingerprint = join.data.detail = data;
    join.settled = Generation{line.number("base", membership_.base().value)};
    join.unreadable = line.text("unreadable", "");
    if (line.text("problem")) join.problem = "could not connect";
    return join;
  }
  static wire::Ready ready(const Line& line) {
    wire::Ready ready;
    ready.step = Step{line.number("step", 0)};
    ready.state_hash = line.number("hash", 77);
    ready.phase = line.number("phase", 1);
    for (const std::string& part : transcript::split(line.text("at", ""), ',')) {
      const auto pair = transcript::split(part, ':');
      ready.places.push_back({parse_worker_id(pair.at(0)).value(), std::stoull(pair.at(1))});
    }
    return ready;
  }

  // ---------------------------------------------------------- what is to be done

  static std::string show_members(const std::vector<ExpectedMember>& members) {
    std::vector<Member> ids;
    for (const ExpectedMember& e : members) ids.push_back(e.member);
    return transcript::show(ids);
  }
  static std::string show_form(const SendForm& e) {
    std::string shown = fmt::format("form g{} {} rank {} of {}", e.generation,
                                    transcript::show(e.to), e.form.rank, e.form.size);
    if (e.form.base != Generation{}) return shown + fmt::format(", state of g{}", e.form.base);
    if (e.form.restore.empty()) return shown + ", from the beginning";
    return shown + fmt::format(", rank {} reads {}", e.form.reader, e.form.restore);
  }
  static std::string show_settled(const SettleGeneration& e) {
    std::string shown =
        fmt::format("settled g{} at step {}: {}", e.generation, e.step, show_members(e.members));
    std::string places;
    for (const BasePlace& place : e.places) {
      places += fmt::format("{} {} at {}{}", places.empty() ? "" : ",",
                            transcript::show(place.member), place.place, place.lost ? "!" : "");
    }
    return places.empty() ? shown : shown + fmt::format("; of phase {}:{}", e.phase, places);
  }
  static std::string show_effect(const Effect& effect) {
    return std::visit(
        Overloaded{
            [](const PersistGeneration& e) { return fmt::format("begun g{}", e.generation); },
            [](const SendForm& e) { return show_form(e); },
            [](const SendRoster& e) {
              return fmt::format("roster g{} {} of {} members", e.generation,
                                 transcript::show(e.to), e.roster.members->size());
            },
            [](const SettleGeneration& e) { return show_settled(e); },
            [](const SendRegroup& e) {
              return fmt::format("regroup g{} {}: {}", e.generation, transcript::show(e.to),
                                 e.reason);
            },
            [](const SendAbort& e) {
              return fmt::format("abort g{} {}: {}", e.generation, transcript::show(e.to),
                                 e.reason);
            },
            [](const ReportBroken& e) {
              return fmt::format("broken g{}: {}", e.generation, e.reason);
            },
            [](const GiveUp& e) { return "cannot settle: " + e.reason; },
            [](const RestoreState& e) { return fmt::format("state lost, of g{}", e.base); },
            [](const EndUnresponsive& e) {
              return fmt::format("unresponsive {}: {}", transcript::show(e.member), e.what);
            },
            [](const FormationStands& e) { return "stands: " + e.reason; },
        },
        effect);
  }

  std::vector<std::string> state() const {
    static constexpr const char* kNames[] = {"gathering", "gathering",  "restoring",
                                             "addresses", "connecting", "settled"};
    std::string shown = fmt::format(
        "{}, g{} of state g{}: {}", kNames[static_cast<int>(membership_.state())],
        membership_.generation(), membership_.base(), show_members(membership_.members()));
    const auto missing = membership_.missing();
    if (missing.empty()) return {shown};
    return {shown,
            fmt::format("waits for {} {}", transcript::show(missing), membership_.waiting_for())};
  }

  Duration patience_;
  Membership membership_{crypto::Secret(), patience_};
  MembershipImage written_;
};

class MembershipTranscript : public testing::TestWithParam<std::string> {};

TEST_P(MembershipTranscript, IsWhatTheMachineDoes) {
  transcript::expect_as_written(ANTDT_TRANSCRIPTS "/membership", GetParam(), [](const Line& job) {
    return std::make_unique<MembershipScript>(job);
  });
}

INSTANTIATE_TEST_SUITE_P(, MembershipTranscript,
                         testing::ValuesIn(transcript::scripts_in(ANTDT_TRANSCRIPTS "/membership")),
                         [](const auto& name) { return name.param; });

}  // namespace
}  // namespace antdt::ctl::membership
