// One parameter server: a value that messages change.
//
// It holds rows, staged parts of pushes, and pulls that wait. Only decisions (closer.h) determine
// what is applied, and in which order; the same messages in the same order give the same state, to
// the last bit. A server that is a home decides for itself with a Closer; its shell sends the
// decisions to the others, and repeats them until they are acknowledged.
//
// A cut is the state after everything that each home decided before its marker for the cut
// (PsDecision::cut): Chandy and Lamport, "Distributed Snapshots", 1985. What a home decided after
// its marker waits until the markers of all homes are applied:
//
//   no cut --a home's marker--> open: decisions of the homes whose marker is here wait
//   open --the last home's marker--> due: the shell saves the state, go_on()
//   open --a marker of a later cut--> open for that one; the earlier one is not made
//
// A table may hold the centre of workers' replicas: its rule is "mean", and a push has a replica in
// the place of a gradient. The mean of the newest replica of each worker is kept beside the rows
// (replica_mean.h), and is in no checkpoint: workers of a new group begin with the centre.
//
// Nothing that a peer sends is trusted: keys and sizes are checked, what a worker may leave staged
// is bounded, and a worker that is not in the group is refused.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "core/ids.h"
#include "core/result.h"
#include "core/wire/envelope.h"
#include "core/wire/servers/ps_messages.h"
#include "trainer/ps/replica/node_image.h"
#include "trainer/ps/rows/gradient_merge.h"
#include "trainer/ps/rows/replica_mean.h"
#include "trainer/ps/rows/store.h"
#include "trainer/ps/steps/step_server.h"

namespace antdt::ps {

enum class Consistency {
  kBarrier,    // ps-bsp: a step is one decision of one home, and pulls wait for it
  kBounded,    // ps-ssp: a pull waits until nobody is more than `staleness` pushes behind
  kUnbounded,  // ps-asp, shadow-…
  kSteps,      // hybrid: the members of a collective decide, and rows follow their steps
};

// The sender of a request, by which the shell can answer it.
struct Asker {
  std::string peer;
  Member member;
  std::uint64_t seq = 0;
};

using ServerReply = std::variant<wire::PsOpened, wire::PsPulled, wire::PsStaged, wire::PsIdled,
                                 wire::Done, wire::Refused, wire::PsDecided, wire::PsApplied>;
struct ReplyTo {
  Asker to;
  ServerReply body;
};

class Server {
 public:
  // `version`: how many updates were applied before, if a group goes on from a checkpoint; then its
  // rows are put into store() when the first worker opens it. `homes`: how many servers decide.
  explicit Server(Consistency consistency, std::uint64_t version = 0, std::uint32_t homes = 1)
      : consistency_(consistency),
        home_count_(homes),
        first_version_(version),
        version_(version),
        steps_(Step{version}) {}

  // Adds workers. A worker is removed by a decision of its home (PsDecision::left), because until
  // then a decision about its pushes may be on its way. A worker that has left never comes back.
  void add_workers(const std::vector<Member>& workers);
  void on(const Asker& from, const wire::PsOpen& m, std::vector<ReplyTo>& replies);
  void on(const Asker& from, const wire::PsPut& m, std::vector<ReplyTo>& replies);
  void on(const Asker& from, const wire::PsPull& m, std::vector<ReplyTo>& replies);
  void on(const Asker& from, const wire::PsPush& m, std::vector<ReplyTo>& replies);
  void on(const Asker& from, const wire::PsStepPull& m, std::vector<ReplyTo>& replies);
  void on(const Asker& from, const wire::PsStepPush& m, std::vector<ReplyTo>& replies);
  // Whether this push changes nothing any more: it is staged, applied or late.
  [[nodiscard]] bool has_taken(Member member, const wire::PsPush& m) const;
  // `decided`: how many decisions this server has made as a home (PsIdled).
  void on(const Asker& from, const wire::PsIdle& m, std::vector<ReplyTo>& replies,
          std::uint64_t decided = 0);

  // Factor of the tables' learning rates, from the next update on.
  void set_rate(double rate);

  // Applies decisions, those of each home in the order of their numbers; a known decision changes
  // nothing. Returns up to which number this home's decisions are applied. Decisions that wait for
  // a cut, or follow one that is due, are not applied yet.
  wire::PsApplied apply(std::uint32_t home, const wire::PsDecision& decision,
                        std::vector<ReplyTo>& replies);

  // The cut whose state the server has now, if one is due. The shell saves it and calls go_on().
  struct Cut {
    std::uint64_t number = 0;
    std::string directory;
  };
  [[nodiscard]] const std::optional<Cut>& due() const { return due_; }
  // Applies what waited, up to the next cut that is due.
  void go_on(std::vector<ReplyTo>& replies);

  // Null until a worker has opened it.
  [[nodiscard]] const Store* store() const { return store_ ? &*store_ : nullptr; }
  [[nodiscard]] Store* store() { return store_ ? &*store_ : nullptr; }
  // Passes the rows to the server of the next group, which must be new and have taken no input. Its
  // workers then find the tables open.
  struct Rows {
    wire::PsOpen tables;
    Store store;
  };
  [[nodiscard]] std::optional<Rows> release();
  void adopt(Rows rows);
  // Drops tables and rows, as if no worker had opened them.
  void forget_store() {
    store_.reset();
    means_.clear();
  }
  // Null if no worker has sent a replica of this table's rows.
  [[nodiscard]] const ReplicaMean* mean_of(std::uint32_t table) const {
    const auto found = means_.find(table);
    return found == means_.end() ? nullptr : &found->second;
  }
  // Memory of the replicas, in bytes.
  [[nodiscard]] std::uint64_t replica_bytes() const;
  // How many decisions of this home are applied.
  [[nodiscard]] std::uint64_t decided(std::uint32_t home) const {
    const auto found = homes_.find(home);
    return found == homes_.end() ? 0 : found->second.decided;
  }
  [[nodiscard]] std::uint64_t version() const { return version_; }
  // Staleness of the applied pushes: how many decisions came between a pull and its use.
  struct Staleness {
    std::uint64_t pushes = 0;
    std::uint64_t sum = 0;
    std::uint64_t most = 0;
  };
  [[nodiscard]] const Staleness& staleness() const { return staleness_; }

  // The state without rows and without senders that wait; only while no cut is due.
  [[nodiscard]] ServerImage image() const;
  // Takes over such a state, of a group of `servers` servers. This server must be new and have
  // taken no input. Afterwards store() has the tables, without rows.
  [[nodiscard]] Status restore(const ServerImage& image, std::uint32_t servers);

 private:
  using Part = TableGradient;
  struct Staged {
    std::uint64_t version = 0;
    std::vector<Part> parts;
  };
  struct Worker {
    std::map<std::uint64_t, Staged> staged;  // by the push's number
    std::uint64_t applied = 0;               // number of the newest applied push
    bool idle = false;
    // The sender of a staged push that has not been answered. Because decisions are behind, the
    // answer is held, so that the worker does not get further ahead of them.
    std::optional<Asker> held;
    std::uint64_t held_number = 0;
  };
  struct Waiting {
    Asker from;
    wire::PsPull pull;
  };
  struct WaitingIdle {
    Asker from;
    std::uint64_t version = 0;
    std::uint64_t decided = 0;
  };
  struct Home {
    std::uint64_t decided = 0;          // number of decisions that are applied
    std::uint64_t marked = 0;           // the newest cut among them
    std::deque<wire::PsDecision> next;  // consecutive numbers
  };
  static constexpr std::size_t kMostStaged = 8;
  static constexpr std::uint32_t kWidest = 1U << 16;
  static constexpr std::size_t kMostTables = 1024;

  [[nodiscard]] static Result<std::vector<TableSpec>> specs_in(const wire::PsOpen& open);
  [[nodiscard]] Worker* worker_of(const Asker& from, std::vector<ReplyTo>& replies);
  [[nodiscard]] Result<std::vector<Part>> parts_of(const std::vector<wire::PsRows>& rows) const;
  [[nodiscard]] bool is_mean(std::uint32_t table) const {
    return store_->tables()[table].rule.kind == UpdateRule::Kind::kMean;
  }
  // The rows that the first replica of a table has are those of all. Error (kCorrupt): one of these
  // has others.
  [[nodiscard]] Status begin_means(const std::vector<Part>& parts);
  [[nodiscard]] std::uint64_t slowest() const;
  // The highest clock that a pull may have to be answered (wire::PsPull).
  [[nodiscard]] std::uint64_t reached() const;
  [[nodiscard]] bool is_closed(const wire::PsPush& m) const;  // of a step that is decided
  [[nodiscard]] bool waits_for_cut(const Home& home) const;
  void mark(Home& home, const wire::PsDecision& marker);
  void take(const wire::PsDecision& decision, std::vector<ReplyTo>& replies);
  [[nodiscard]] ServerReply pulled(const std::vector<wire::PsRows>& wanted);
  // Follows the steps of the sender, and answers it.
  void follow_steps(const Asker& from, const steps::Input& input,
                    const std::vector<wire::PsRows>& wanted, std::vector<ReplyTo>& replies);
  // At once, or when fewer pushes of this worker are staged.
  static void answer_staged(const Asker& from, std::uint64_t number, Worker& worker,
                            std::vector<ReplyTo>& replies);
  void answer_waiting(std::vector<ReplyTo>& replies);
  void update(const wire::PsDecision& decision);
  void forget_decided(std::vector<ReplyTo>& replies);

  Consistency consistency_;
  std::optional<Store> store_;
  float rate_ = 1;
  wire::PsOpen open_;  // the tables, set once there is a store
  std::uint32_t home_count_;
  std::uint64_t first_version_;
  std::uint64_t version_;
  std::map<std::uint32_t, Home> homes_;  // homes that were heard of
  std::uint64_t newest_cut_ = 0;         // the newest cut for which a home has a marker
  std::uint64_t cuts_made_ = 0;          // the newest that was due
  std::optional<Cut> due_;
  std::map<std::uint32_t, ReplicaMean> means_;  // by table
  std::map<Member, Worker> workers_;
  std::set<Member> left_;
  std::deque<Waiting> waiting_;
  std::deque<WaitingIdle> waiting_idle_;
  Staleness staleness_;
  StepServer steps_;  // with Consistency::kSteps
};

}  // namespace antdt::ps
