// What has happened to every record of the phase that is open.
//
//     ahead of the cursor ──grant──> in one member's hand ──commit──> committed
//                                       │          ^
//                          lost, settled,          │ granted next,
//                         recalled, late           │ lowest first
//                                       v          │
//                                      returned ───┘──declared──> skipped
//
// The ledger decides what to do about an event, and writes it down as a record (records.h). Its
// state (ledger_state.h) changes only by applying records, so that a restart, which applies those
// of the journal, arrives at the same state. Committed is what a member says is in the model; it
// never goes back within a lineage.
//
// The state is what is outstanding: a cursor, the returned ranges, each member's grants, place and
// last answer. It does not grow with the data set.
//
// Durable: everything but when a recall was last sent. The caller commits the journal before it
// carries out any effect of the same turn. docs/machines.md describes the shape of a machine.
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
#include "core/wire/envelope.h"
#include "core/wire/membership_messages.h"
#include "shard_server/ledger/inputs.h"
#include "shard_server/ledger/ledger_state.h"

namespace antdt::shard_server {

// Kinds in the journal and in snapshots.
inline constexpr std::string_view kLedgerKind = "ledger";
inline constexpr std::string_view kAccountsKind = "accounts";

namespace ledger {

// Append to the journal under kLedgerKind, and give to Accounts::apply.
struct PersistRecord {
  std::string bytes;
};
struct SendGrants {
  Member member;
  Generation generation;
  std::uint64_t seq = 0;
  wire::Grants grants;
};
// What was said cannot be: answer `seq` with it (0: a one-way message or an
// order; tell the log). Nothing was changed.
struct SendRefusal {
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
struct EndPhase {
  std::uint64_t phase = 0;
};
// For the log: records of a lost member that will be handed out again.
struct NoteReturned {
  Member member;
  Epoch epoch;
  Range range;
};
// The retry limit: a sentence that names the records and what to do.
struct StopJob {
  std::string reason;
};

using Effect = std::variant<PersistRecord, SendGrants, SendRefusal, SendRecall, EndPhase,
                            NoteReturned, StopJob>;
using Effects = std::vector<Effect>;

class Ledger {
 public:
  explicit Ledger(LedgerConfig config);

  // Appends to `out`: records first, then what depends on them.
  void step(const Input& input, MonoTime now, Effects& out);
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
  [[nodiscard]] Result<PersistRecord> rewind(Lineage lineage, std::string ledger_image,
                                             std::string accounts_image);

  [[nodiscard]] const Phase& phase() const { return state_.phase(); }
  [[nodiscard]] bool complete() const { return state_.complete(); }
  [[nodiscard]] std::uint64_t records() const { return state_.supply().stream().size(); }
  [[nodiscard]] std::uint64_t committed() const { return state_.hands().committed(); }
  [[nodiscard]] std::uint64_t outstanding() const { return state_.hands().outstanding(); }
  [[nodiscard]] std::uint64_t ungranted() const { return state_.supply().ungranted(); }
  [[nodiscard]] std::uint64_t skipped() const {
    return records() - committed() - outstanding() - ungranted();
  }
  // Of the open phase; for accounts that begin again at a checkpoint.
  [[nodiscard]] IntervalSet committed_positions() const { return state_.committed_positions(); }
  [[nodiscard]] const wire::EvalPartial& evaluation() const { return state_.evaluation(); }
  // Lost ones too (active = false).
  [[nodiscard]] const std::map<WorkerId, Holder>& holders() const {
    return state_.hands().holders();
  }

 private:
  // Decisions: validate, write down, apply, and say what follows.
  void on(const PhaseOpened& input, MonoTime now, Effects& out);
  void on(const MemberAdmitted& input, MonoTime now, Effects& out);
  void on(const MemberLost& input, MonoTime now, Effects& out);
  void on(const MemberLeft& input, MonoTime now, Effects& out);
  void on(const GenerationSettled& input, MonoTime now, Effects& out);
  void on(const FetchRequested& input, MonoTime now, Effects& out);
  void on(const ProgressReported& input, MonoTime now, Effects& out);
  void on(const SharesPlanned& input, MonoTime now, Effects& out);
  void on(const RecallAnswered& input, MonoTime now, Effects& out);
  void on(const SkipDeclared& input, MonoTime now, Effects& out);
  template <class Declaration>  // JobDeclared, DeliveryChosen, JobFinished: for the accounts only
  void on(const Declaration& input, MonoTime now, Effects& out);

  void answer(const FetchRequested& input, const Holder& holder, Effects& out);
  template <class R>
  void write_down(const R& record, Effects& out);
  // `write_down` when it fits the state, otherwise SendRefusal.
  template <class R>
  bool write_down_checked(const R& record, Member sender, Effects& out);
  [[nodiscard]] wire::Grants grants_of(const Answer& answer) const;
  // Nothing is left to grant and `waiting` waits: who holds clearly more than needed gives back.
  void recall_surplus(const Holder& waiting, MonoTime now, Effects& out);
  void send_recall(WorkerId worker, const Holder& holder, MonoTime now, Effects& out);
  void check_invariants() const;

  LedgerConfig config_;
  LedgerState state_;
  // Not durable: a recall is sent again after a restart.
  std::map<WorkerId, MonoTime> recall_sent_;
  bool may_be_recalled_ = true;  // some holder: false only when none is
};

}  // namespace ledger

using ledger::Ledger;

}  // namespace antdt::shard_server
