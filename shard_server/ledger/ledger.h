// The state of every record of the open phase.
//
//     ahead of the cursor ──grant──> held by one member ──commit──> committed
//                                       │          ^
//                          lost, settled,          │ granted next,
//                         recalled, late           │ lowest first
//                                       v          │
//                                      returned ───┘──declared──> skipped
//
// The ledger decides what to do about an event and writes its decision down as a record
// (records.h). Its state (ledger_state.h) changes only by applying records. A restart applies the
// records of the journal, so it arrives at the same state. A record is committed when a member says
// that it is in the model. What is committed never goes back within a lineage. A record that the
// member's program skipped is committed, too; the accounts tell it apart (RecordsSkipped).
//
// The state is only what is outstanding: a cursor, the returned ranges, and each member's grants,
// place and last answer. It does not grow with the data set.
//
// Everything is durable except when a recall was last sent. The caller commits the journal before
// it carries out any effect of the same turn. docs/machines.md describes the shape of a machine.
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

// The ledger's kind of entry in the journal and in snapshots.
inline constexpr std::string_view kLedgerKind = "ledger";
inline constexpr std::string_view kAccountsKind = "accounts";

namespace ledger {

// Append this to the journal under kLedgerKind, and give it to Accounts::apply.
struct PersistRecord {
  std::string bytes;
};
struct SendGrants {
  Member member;
  Generation generation;
  std::uint64_t seq = 0;
  wire::Grants grants;
};
// The message cannot be true. Answer the request `seq` with this; for a one-way message or an order
// (seq 0) write it to the log. Nothing was changed.
struct SendRefusal {
  Member member;
  std::uint64_t seq = 0;
  wire::Refused refused;
};
// `number` goes into the envelope's seq, and the answer (Recalled) repeats it.
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
// For the log: records of a lost member that will be granted again.
struct NoteReturned {
  Member member;
  Epoch epoch;
  Range range;
};
// The retry limit is exceeded. The text names the records and says what to do.
struct StopJob {
  std::string reason;
};

using Effect = std::variant<PersistRecord, SendGrants, SendRefusal, SendRecall, EndPhase,
                            NoteReturned, StopJob>;
using Effects = std::vector<Effect>;

class Ledger {
 public:
  explicit Ledger(LedgerConfig config);

  // Appends to `out`: first the journal records, then the effects that depend on them.
  void step(const Input& input, MonoTime now, Effects& out);
  // Applies a record of the journal. The error says that the journal is of other data, or that
  // there is a defect.
  [[nodiscard]] Status replay(std::string_view record_bytes);

  // The state as bytes. Equal states give equal bytes.
  [[nodiscard]] std::string image() const;
  [[nodiscard]] static Result<Ledger> restore(LedgerConfig config, std::string_view image);
  // The image as it is when exactly these places are committed, whether that is past, present or
  // future: for a checkpoint. An error if a place is too long ago (see Holder::recent) or was never
  // granted.
  [[nodiscard]] Result<std::string> image_at(const std::vector<wire::MemberPlace>& places) const;
  // Goes back to the images kept with a checkpoint. The record that it returns must be persisted.
  // Afterwards nobody is a member, but attempts stay fenced.
  [[nodiscard]] Result<PersistRecord> rewind(Lineage lineage, std::string ledger_image,
                                             std::string accounts_image);

  [[nodiscard]] const Phase& phase() const { return state_.phase(); }
  [[nodiscard]] bool complete() const { return state_.complete(); }
  [[nodiscard]] std::uint64_t records() const { return state_.supply().stream().size(); }
  [[nodiscard]] std::uint64_t committed() const { return state_.holders().committed(); }
  [[nodiscard]] std::uint64_t outstanding() const { return state_.holders().outstanding(); }
  [[nodiscard]] std::uint64_t ungranted() const { return state_.supply().ungranted(); }
  // Of the records that workers of this domain are given: how many are not committed, nor skipped.
  [[nodiscard]] std::uint64_t left_in(DomainNumber domain) const { return state_.left_in(domain); }
  // How many active members are given the records of this domain.
  [[nodiscard]] std::uint64_t members_in(DomainNumber domain) const {
    return state_.sums_for(domain).members;
  }
  // "" for 0.
  [[nodiscard]] std::string_view domain_name(DomainNumber domain) const {
    return config_.pins().name_of(domain);
  }
  // Without pins there is one section.
  [[nodiscard]] const std::vector<SectionSupply>& sections() const {
    return state_.supply().sections();
  }
  [[nodiscard]] std::uint64_t skipped() const {
    return records() - committed() - outstanding() - ungranted();
  }
  // Positions of the open phase, for accounts that begin again at a checkpoint.
  [[nodiscard]] IntervalSet committed_positions() const { return state_.committed_positions(); }
  [[nodiscard]] const wire::EvalPartial& evaluation() const { return state_.evaluation(); }
  // All holders, including lost ones (active = false).
  [[nodiscard]] const std::map<WorkerId, Holder>& holders() const { return state_.holders().all(); }

 private:
  // Each decision checks the event, writes a record down, applies it, and appends what follows.
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
  void on(const PhaseCut& input, MonoTime now, Effects& out);
  // JobDeclared, DeliveryChosen and JobFinished are for the accounts only, and so is DataPinned
  void on(const DataPinned& input, MonoTime now, Effects& out);
  template <class Declaration>
  void on(const Declaration& input, MonoTime now, Effects& out);

  void answer(const FetchRequested& input, const Holder& holder, Effects& out);
  template <class R>
  void write_down(const R& record, Effects& out);
  // Writes `record` down if it fits the state; otherwise answers SendRefusal.
  template <class R>
  bool write_down_checked(const R& record, Member sender, Effects& out);
  [[nodiscard]] wire::Grants grants_of(const Answer& answer) const;
  // Nothing is left to grant and `waiting` waits: recalls records from members that hold clearly
  // more than they need.
  void recall_surplus(const Holder& waiting, MonoTime now, Effects& out);
  void send_recall(WorkerId worker, const Holder& holder, MonoTime now, Effects& out);
  void check_invariants() const;

  LedgerConfig config_;
  LedgerState state_;
  // Not durable: after a restart each recall is sent again.
  std::map<WorkerId, MonoTime> recall_sent_;
  bool may_be_recalled_ = true;  // false only if no holder can be asked to give records back
};

}  // namespace ledger

using ledger::Ledger;

}  // namespace antdt::shard_server
