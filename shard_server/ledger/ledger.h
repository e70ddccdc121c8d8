// What has happened to every record of the phase that is open.
//
//     ahead of the cursor ──grant──> in one member's hand ──commit──> committed
//                                       │          ^
//                          lost, settled,          │ granted next,
//                         recalled, late           │ lowest first
//                                       v          │
//                                      returned ───┘──declared──> skipped
//
// A value, owned by the job daemon, without I/O, clock or randomness. step()
// decides and says as effects what to do; what it decided it writes down as
// records and changes itself only by applying those, so that a restart, which
// applies the journaled records, arrives at the same state. Committed is what
// a member says is in the model; it never goes back within a lineage.
//
// State is what is outstanding: a cursor, the returned ranges, each member's
// grants, place and last answer. It does not grow with the data set.
//
// Durable: everything but when a recall was last sent. The caller commits the
// journal before it sends any effect of the same turn.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/clock.h"
#include "core/result.h"
#include "shard_server/ledger/events.h"
#include "shard_server/ledger/return_queue.h"
#include "shard_server/ledger/stream.h"

namespace antdt::shard_server {

// Kinds in the journal and in snapshots.
inline constexpr std::string_view kLedgerKind = "ledger";
inline constexpr std::string_view kAccountsKind = "accounts";

struct LedgerConfig {
  DataSet train;
  DataSet eval;
  // Losses of holders of the same range at which the job stops: it is the range that ends them.
  std::uint32_t retry_limit = 3;
  bool drops_late = false;  // records that came too late to their step: at most once
  Duration recall_again_after = std::chrono::milliseconds(100);
  std::string run = "RUN";  // as an operator names it, in what they are told to do
};

namespace effect {

// Append to the journal under kLedgerKind, and give to Accounts::apply.
struct Persist {
  std::string bytes;
};
struct Reply {
  Member member;
  Generation generation;
  std::uint64_t seq = 0;
  wire::Grants grants;
};
// What was said cannot be: answer `seq` with it (0: a one-way message or an
// order; tell the log). Nothing was changed.
struct Refuse {
  Member member;
  std::uint64_t seq = 0;
  wire::Refused refused;
};
// `number` goes into the envelope's seq; its Recalled repeats it.
struct SendRecall {
  Member member;
  Generation generation;
  std::uint64_t number = 0;
  wire::Recall recall;
};
// Every record of the phase is committed or skipped.
struct PhaseComplete {
  std::uint64_t phase = 0;
};
// For the log: records of a lost member that will be handed out again.
struct Returned {
  Member member;
  Epoch epoch;
  Range range;
};
// The retry limit: a sentence that names the records and what to do.
struct StopJob {
  std::string reason;
};

}  // namespace effect

using Effect = std::variant<effect::Persist, effect::Reply, effect::Refuse, effect::SendRecall,
                            effect::PhaseComplete, effect::Returned, effect::StopJob>;
using Effects = std::vector<Effect>;

struct Phase {
  std::uint64_t number = 0;  // 0: none yet
  PhaseKind kind = PhaseKind::kTrain;
  Epoch epoch;
};

// What a worker was last told, for the retry of the same request.
struct Answer {
  std::uint64_t seq = 0;  // 0: none
  std::uint64_t phase = 0;
  AnswerStatus status = AnswerStatus::kWait;
  std::uint32_t retry_ms = 0;
  std::vector<Interval> granted;
};

// How much of what a member committed is kept, for checkpoints of steps that
// were passed while they were written.
inline constexpr std::size_t kRecentRanges = 32;

struct Holder {
  Attempt attempt;
  Generation generation;
  bool active = false;             // false: lost; kept so that its attempt stays fenced
  std::uint64_t place = 0;         // committed, since the phase or the generation began
  std::uint64_t end = 0;           // granted, since then
  std::vector<Range> grants;       // end - place records, in the order of consumption
  std::vector<Range> recent;       // the last kRecentRanges committed, up to `place`
  std::uint64_t step_records = 0;  // see MemberShare
  std::uint64_t hold_records = 0;
  Answer last;
  std::uint64_t recalls = 0;    // numbers recalls
  bool recall_pending = false;  // number `recalls` is not answered: it gets no more grants
  std::uint64_t recall_keep_to = 0;
  MonoTime recall_sent{};  // not durable: sent again after a restart
  [[nodiscard]] std::uint64_t outstanding() const { return end - place; }
};

class Ledger {
 public:
  explicit Ledger(LedgerConfig config);

  // Records first, then what depends on them.
  [[nodiscard]] Effects step(const Event& event, MonoTime now);
  // The same, adding to `effects`: for the loop's hot path.
  void step(const Event& event, MonoTime now, Effects& effects);
  // A record of the journal. An error is a journal of other data or a defect.
  [[nodiscard]] Status replay(std::string_view record_bytes);

  // The state as bytes; the same state is the same bytes.
  [[nodiscard]] std::string image() const;
  [[nodiscard]] static Result<Ledger> restore(LedgerConfig config, std::string_view image);
  // The image as it is, was or will be when just these places are committed:
  // for a checkpoint. An error when a place is too long ago (see Holder::recent)
  // or was never granted.
  [[nodiscard]] Result<std::string> image_at(const std::vector<wire::MemberPlace>& places) const;
  // Goes back to images kept with a checkpoint; what is returned is to be
  // persisted. Nobody is a member then, but attempts stay fenced.
  [[nodiscard]] Result<effect::Persist> rewind(Lineage lineage, std::string ledger_image,
                                               std::string accounts_image);

  [[nodiscard]] const Phase& phase() const { return phase_; }
  [[nodiscard]] bool complete() const { return ungranted() == 0 && outstanding_ == 0; }
  [[nodiscard]] std::uint64_t records() const { return stream_.size(); }
  [[nodiscard]] std::uint64_t committed() const { return committed_; }
  [[nodiscard]] std::uint64_t outstanding() const { return outstanding_; }
  [[nodiscard]] std::uint64_t ungranted() const;
  [[nodiscard]] std::uint64_t skipped() const {
    return records() - committed_ - outstanding_ - ungranted();
  }
  // Of the open phase; for accounts that begin again at a checkpoint.
  [[nodiscard]] IntervalSet committed_positions() const;
  // Merged over what is committed of an evaluation phase; until the next opens.
  [[nodiscard]] const wire::EvalPartial& evaluation() const { return evaluation_; }
  // Lost ones too (active = false).
  [[nodiscard]] const std::map<WorkerId, Holder>& holders() const { return holders_; }

 private:
  friend class LedgerImage;
  // What applying a record gave back to be handed out again.
  struct GivenBack {
    Member member;
    Range range;
  };
  using Changes = std::vector<GivenBack>;

  // Decisions: validate, write down, apply, and say what follows.
  void on(const event::PhaseOpened& event, MonoTime now, Effects& effects);
  void on(const event::MemberAdmitted& event, MonoTime now, Effects& effects);
  void on(const event::MemberLost& event, MonoTime now, Effects& effects);
  void on(const event::MemberLeft& event, MonoTime now, Effects& effects);
  void on(const event::Settled& event, MonoTime now, Effects& effects);
  void on(const event::Fetch& event, MonoTime now, Effects& effects);
  void on(const event::Progress& event, MonoTime now, Effects& effects);
  void on(const event::Shares& event, MonoTime now, Effects& effects);
  void on(const event::Recalled& event, MonoTime now, Effects& effects);
  void on(const event::SkipDeclared& event, MonoTime now, Effects& effects);
  template <class Declaration>  // JobDeclared, DeliveryChosen, JobFinished: for the accounts only
  void on(const Declaration& event, MonoTime now, Effects& effects);
  void answer(const event::Fetch& event, const Holder& holder, Effects& effects);
  template <class R>
  void write_down(const R& record, Effects& effects);
  void report(const Changes& changes, Effects& effects) const;
  // `write_down` when it fits the state, otherwise Refuse.
  template <class R>
  bool write_down_checked(const R& event, Member sender, Effects& effects);
  [[nodiscard]] Holder* current_holder(Member member, Generation generation);
  [[nodiscard]] record::Answered decide(const event::Fetch& event, const Holder& holder) const;
  [[nodiscard]] std::vector<Range> choose_ranges(std::uint64_t records,
                                                 std::optional<WorkerId> but_of) const;
  [[nodiscard]] wire::Grants grants_of(const Answer& answer) const;
  void recall_from_the_rich(const Holder& poor, MonoTime now, Effects& effects);
  void send_recall(WorkerId worker, Holder& holder, MonoTime now, Effects& effects) const;

  // Whether an event or a record fits the state; the error is for its sender.
  [[nodiscard]] Status check(const event::JobDeclared&) const { return {}; }
  [[nodiscard]] Status check(const event::DeliveryChosen&) const { return {}; }
  [[nodiscard]] Status check(const event::JobFinished&) const { return {}; }
  [[nodiscard]] Status check(const event::PhaseOpened& event) const;
  [[nodiscard]] Status check(const event::MemberAdmitted& event) const;
  [[nodiscard]] Status check(const event::MemberLost& event) const;
  [[nodiscard]] Status check(const event::MemberLeft& event) const;
  [[nodiscard]] Status check(const event::Settled& event) const;
  [[nodiscard]] Status check(const event::Fetch& event) const;
  [[nodiscard]] Status check(const record::Answered& record) const;
  [[nodiscard]] Status check(const event::Progress& event) const;
  [[nodiscard]] Status check(const event::Shares&) const { return {}; }
  [[nodiscard]] Status check(const record::RecallIssued& record) const;
  [[nodiscard]] Status check(const record::Recalled& record) const;
  [[nodiscard]] Status check(const record::Late& record) const;
  [[nodiscard]] Status check(const event::SkipDeclared& event) const;
  [[nodiscard]] Status check(const record::Rewound& record) const;
  [[nodiscard]] Status check_place(Member member, std::uint64_t place) const;
  // `place` is one of its.
  [[nodiscard]] Status check_late(Member member, std::uint64_t place, std::uint64_t records) const;
  [[nodiscard]] bool is_next(Interval at, std::uint64_t cursor) const;

  // Updates: the same when it happens and when it is replayed. They cannot
  // fail; what they are given has passed check().
  void apply(const event::JobDeclared&, Changes&) {}
  void apply(const event::DeliveryChosen&, Changes&) {}
  void apply(const event::JobFinished&, Changes&) {}
  void apply(const event::PhaseOpened& record, Changes& changes);
  void apply(const event::MemberAdmitted& record, Changes& changes);
  void apply(const event::MemberLost& record, Changes& changes);
  void apply(const event::MemberLeft& record, Changes& changes);
  void apply(const event::Settled& record, Changes& changes);
  void apply(const record::Answered& record, Changes& changes);
  void apply(const event::Progress& record, Changes& changes);
  void apply(const event::Shares& record, Changes& changes);
  void apply(const record::RecallIssued& record, Changes& changes);
  void apply(const record::Recalled& record, Changes& changes);
  void apply(const record::Late& record, Changes& changes);
  void apply(const event::SkipDeclared& record, Changes& changes);
  void apply(const record::Rewound& record, Changes& changes);
  // The first records of a hand leave it: visit(range), one after the other.
  template <class F>
  static void take_front(Holder& holder, std::uint64_t records, F visit);
  void commit(Holder& holder, std::uint64_t place);
  void uncommit(Holder& holder, std::uint64_t place);
  void hand_out(Holder& holder, const Range& range);
  void give_back_all(WorkerId worker, Holder& holder, bool suspect, Changes& changes);
  void give_back(Range range, std::optional<WorkerId> late_of = {});
  void leave_out(Interval skipped);
  void reset_hand(Holder& holder);
  void count_members();

  LedgerConfig config_;
  Phase phase_;
  EpochStream stream_;
  std::uint64_t cursor_ = 0;  // positions from here on were never handed out
  ReturnQueue returned_;
  IntervalSet skips_;  // declared for this phase
  // Of them those that nobody trains any more. The others were committed before, or are in
  // somebody's hand and may be committed yet.
  IntervalSet left_out_;
  std::uint64_t committed_ = 0;
  wire::EvalPartial evaluation_;
  std::map<WorkerId, Holder> holders_;

  // Follow from the above.
  std::uint64_t outstanding_ = 0;  // in all hands together
  std::uint64_t skips_ahead_ = 0;  // declared positions from the cursor on
  std::uint64_t active_members_ = 0;
  std::uint64_t share_sum_ = 0;  // step_records of all active members
  bool may_be_recalled_ = true;  // some holder: false only when none is
};

}  // namespace antdt::shard_server
