// Transcripts of a group of parameter servers and the workers that push to it.
//
//   job servers=N [sync=ps-bsp|ps-ssp|ps-asp] [replicas=1|2] [backups=N] [hang-after=TIME]
//       [keeps-rows=1]
//   expect MEMBER ... [added=MEMBER,...]    servers and workers that there are, or that are
//                                           to be of the next size
//   joined MEMBER ... [problem=yes]         problem: it heard of the servers and could not begin
//   serving SERVER ... [number=N] [backed=VIEW] [left=MEMBER:FROM-TO,...]
//       number: the newest that it was told, if not said otherwise
//   saved SERVER ... version=N [error=yes]  the checkpoint that is under way
//   gone MEMBER REASON
//   begin [restore=DIRECTORY] [version=N]   the next group goes on from this checkpoint
//   cut N [last]                            a checkpoint is to be written
//   resize N | go-on                        answers the last one
//   backups N | rate FACTOR | tick
//   restart                                 a new job daemon, with the image of the last change
//   state                                   shows the group and who is what in it
//
// Generations are written g1, g2, ...; what servers are told is numbered #1, #2, ...
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "core/overloaded.h"
#include "ctl/servers/server_group.h"
#include "tests/transcript/transcript.h"

namespace antdt::ctl::servers {
namespace {

using transcript::Line;

class ServersScript : public transcript::Machine {
 public:
  explicit ServersScript(const Line& job) : config_(config_of(job)), group_(config_) {}

  std::vector<std::string> run(const Line& line, MonoTime now) override {
    if (line.what() == "state") return state();
    if (line.what() == "restart") {
      group_ = ServerGroup(config_);
      group_.restore(written_, written_.generation);
      return {};
    }
    std::vector<std::string> shown;
    for (const Input& input : inputs_of(line)) {
      Effects effects;
      group_.step(input, now, effects);
      for (const Effect& effect : effects) {
        if (std::holds_alternative<PersistGroup>(effect)) written_ = group_.image();
        if (const auto* order = std::get_if<SendCut>(&effect)) cut_ = order->cut.number;
        if (!std::holds_alternative<PersistGroup>(effect)) shown.push_back(show_effect(effect));
      }
    }
    return shown;
  }

 private:
  static ServerGroupConfig config_of(const Line& job) {
    ServerGroupConfig config;
    config.servers = static_cast<std::uint32_t>(job.number("servers", 1));
    config.sync = by_name<SyncStrategy>(job.text("sync", "ps-bsp")).value();
    config.replicas = static_cast<std::uint32_t>(job.number("replicas", 1));
    config.backups = static_cast<std::uint32_t>(job.number("backups", 0));
    config.hang_after = job.duration("hang-after", config.hang_after);
    config.keeps_rows = job.number("keeps-rows", 0) > 0;
    return config;
  }

  // ------------------------------------------------------------- what happens

  std::vector<Input> inputs_of(const Line& line) {
    const std::string& what = line.what();
    if (what == "expect") return {expect(line)};
    if (what == "gone") return {GroupMemberLost{transcript::member_of(line.word(0)), line.rest(1)}};
    if (what == "begin")
      return {RestoreChosen{line.text("restore", ""), line.number("version", 0)}};
    if (what == "cut") return {CutOrdered{std::stoull(line.word(0)), line.has("last")}};
    if (what == "resize") return {GroupResized{count_of(line)}};
    if (what == "go-on") return {ResizeAbandoned{}};
    if (what == "backups") return {TermsSet{count_of(line)}};
    if (what == "rate") return {TermsSet{{}, std::stod(line.word(0))}};
    if (what == "tick") return {TimePassed{}};
    std::vector<Input> inputs;
    for (const Member member : line.members()) {
      if (what == "joined") {
        inputs.emplace_back(joined(member, line));
      } else if (what == "serving") {
        inputs.emplace_back(ServeAnswered{member, group_.generation(), serving(line)});
      } else if (what == "saved") {
        inputs.emplace_back(SlicesSaved{member, group_.generation(), saved(member, line)});
      }
    }
    if (inputs.empty()) throw std::runtime_error("no event: " + what);
    return inputs;
  }

  static std::uint32_t count_of(const Line& line) {
    return static_cast<std::uint32_t>(std::stoul(line.word(0)));
  }
  static ProcessesExpected expect(const Line& line) {
    ProcessesExpected expect;
    for (const Member member : line.members()) {
      (member.worker.role == 's' ? expect.servers : expect.workers).push_back(member);
    }
    for (const std::string& added : transcript::split(line.text("added", ""), ',')) {
      expect.added.push_back(transcript::member_of(added));
    }
    return expect;
  }
  static GroupJoinRequested joined(Member member, const Line& line) {
    GroupJoinRequested joined{member, {}, fmt::format("key of {}", transcript::show(member)), {}};
    if (member.worker.role == 's') joined.endpoint = transcript::show(member);
    if (line.text("problem")) joined.problem = "it could not reach s1";
    return joined;
  }
  wire::PsServing serving(const Line& line) const {
    wire::PsServing serving;
    serving.number = line.number("number", group_.roster().number);
    serving.backed = line.number("backed", 0);
    for (const std::string& left : transcript::split(line.text("left", ""), ',')) {
      const auto parts = transcript::split(left, ':');
      const auto ends = transcript::split(parts.at(1), '-');
      const Member member = transcript::member_of(parts[0]);
      serving.left.push_back(
          {member.worker, member.attempt, 1, {{std::stoull(ends.at(0)), std::stoull(ends.at(1))}}});
    }
    return serving;
  }
  wire::PsSaved saved(Member member, const Line& line) const {
    wire::PsSaved saved;
    saved.number = cut_;
    saved.version = line.number("version", 0);
    saved.files = {{fmt::format("{}.rows", member.worker), 100, "0"}};
    if (line.text("error")) saved.error = "no space left on device";
    return saved;
  }

  // ---------------------------------------------------------- what is to be done

  static std::string show_places(const wire::PsPlaces& places) {
    std::string shown = transcript::show(Member{places.worker, places.attempt}) + ":";
    for (const wire::PsRange& range : places.applied) {
      shown += fmt::format(" {}-{}", range.from, range.to);
    }
    return shown;
  }
  static std::string show_members(const std::vector<wire::PsMember>& all) {
    std::vector<Member> members;
    for (const wire::PsMember& m : all) members.push_back({m.worker, m.attempt});
    return transcript::show(members);
  }
  static std::string show_serve(const SendServe& e) {
    const wire::PsServe& s = e.serve;
    std::string shown = fmt::format("serve g{} {} #{}: workers {}", e.generation,
                                    transcript::show(e.to), s.number, show_members(s.workers));
    if (!s.leaving.empty()) shown += ", leaving " + show_members(s.leaving);
    if (s.replica != wire::ReplicaRole::kAlone)
      shown += fmt::format(", {} of view {} with {}", s.replica, s.view, s.other);
    if (s.replica == wire::ReplicaRole::kAlone && s.view > 0)
      shown += fmt::format(", alone in view {}", s.view);
    if (s.keep) shown += ", keeps its rows";
    if (!s.restore.empty())
      shown +=
          fmt::format(", {} {} after {} updates", e.reads ? "reads" : "from", s.restore, s.version);
    if (s.backups > 0) shown += fmt::format(", {} backup workers", s.backups);
    if (s.rate != 1) shown += fmt::format(", rate {}", s.rate);
    if (s.last_cut > 0) shown += fmt::format(", checkpoint {} is the last", s.last_cut);
    return shown;
  }
  static std::string show_cut(const ConcludeCut& e) {
    if (!e.error.empty()) return "cut failed: " + e.error;
    return fmt::format("cut {} done after {} updates: {} files in {}", e.number, e.version,
                       e.files.size(), e.directory);
  }
  static std::string show_effect(const Effect& effect) {
    return std::visit(
        Overloaded{
            [](const PersistGroup&) { return std::string(); },
            [](const SendServe& e) { return show_serve(e); },
            [](const SendCut& e) {
              return fmt::format("write g{} {} checkpoint {}", e.generation, transcript::show(e.to),
                                 e.cut.number);
            },
            [](const OpenGroup& e) {
              return fmt::format("formed g{}: {}", e.generation, transcript::show(e.workers));
            },
            [](const AdmitWorker& e) { return "admit " + transcript::show(e.worker); },
            [](const SettleLeaver& e) { return "left " + show_places(e.places); },
            [](const DissolveGroup& e) {
              return fmt::format("over g{} {}: {}", e.generation, transcript::show(e.workers),
                                 e.reason);
            },
            [](const RepeatDissolve& e) {
              return fmt::format("over again g{} {}", e.generation, transcript::show(e.workers));
            },
            [](const EndSilentMember& e) {
              return fmt::format("silent {}: {}", transcript::show(e.member), e.what);
            },
            [](const ReportSwitch& e) {
              return fmt::format("server {} lost {}: {} goes on{}", e.server,
                                 transcript::show(e.lost), transcript::show(e.alone),
                                 e.promoted ? " as the primary" : "");
            },
            [](const ReportBackup& e) {
              return fmt::format("server {} is backed: {} has what {} has", e.server,
                                 transcript::show(e.backup), transcript::show(e.primary));
            },
            [](const SendRosters& e) { return "moved, for " + transcript::show(e.workers); },
            [](const ReportTrouble& e) {
              return fmt::format("trouble of {}{}: {}", transcript::show(e.worker),
                                 e.last ? " for the last time" : "", e.problem);
            },
            [](const ChooseRestore&) { return std::string("state lost"); },
            [](const ConcludeCut& e) { return show_cut(e); },
        },
        effect);
  }

  std::vector<std::string> state() const {
    static constexpr const char* kNames[] = {"gathering", "forming", "serving"};
    std::vector<std::string> shown{fmt::format(
        "{} g{} #{}, admitted: {}", kNames[static_cast<int>(group_.state())], group_.generation(),
        group_.roster().number, transcript::show(group_.workers().admitted()))};
    for (const GroupServer& server : written_.servers) {
      const ServerRole role = group_.placement().role_of(server.member());
      if (role != ServerRole::kNone)
        shown.push_back(fmt::format("{}: {}", transcript::show(server.member()), role));
    }
    if (!group_.waiting_for().empty()) shown.push_back("waits for " + group_.waiting_for());
    return shown;
  }

  ServerGroupConfig config_;
  ServerGroup group_;
  ServerGroupImage written_;
  std::uint64_t cut_ = 0;  // that servers were asked for last
};

class ServersTranscript : public ::testing::TestWithParam<std::string> {};

TEST_P(ServersTranscript, IsWhatTheMachineDoes) {
  transcript::expect_as_written(ANTDT_TRANSCRIPTS "/servers", GetParam(), [](const Line& job) {
    return std::make_unique<ServersScript>(job);
  });
}

INSTANTIATE_TEST_SUITE_P(, ServersTranscript,
                         ::testing::ValuesIn(transcript::scripts_in(ANTDT_TRANSCRIPTS "/servers")),
                         [](const auto& name) { return name.param; });

}  // namespace
}  // namespace antdt::ctl::servers
