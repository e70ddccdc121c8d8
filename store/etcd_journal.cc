#include "store/etcd_journal.h"

#include <charconv>
#include <optional>
#include <random>
#include <utility>

#include "shard_server/archive.h"

namespace antdt::store {

using shard_server::StoredBody;
using shard_server::StoredJournal;

namespace {

constexpr std::uint64_t kFormat = 1;
// etcd takes requests of 1.5 MiB unless it is told otherwise.
constexpr std::size_t kPieceBytes = 1U << 20U;
constexpr std::int64_t kPage = 128;  // turns that are read by one request
constexpr Duration kRetryAfter = std::chrono::milliseconds(250);
constexpr Duration kLateAnswer = std::chrono::milliseconds(500);
constexpr int kReadings = 5;  // of a journal that is compacted while it is read

// ---------------------------------------------------------------------- keys

struct Keys {
  std::string job;  // "v1/jobs/<id>/"

  explicit Keys(const std::string& id) : job("v1/jobs/" + id + "/") {}
  [[nodiscard]] std::string meta() const { return job + "meta"; }
  [[nodiscard]] std::string lock() const { return job + "lock"; }
  [[nodiscard]] std::string snapshot() const { return job + "snapshot"; }
  [[nodiscard]] std::string file(const std::string& name) const { return job + "file/" + name; }
  [[nodiscard]] std::string pieces_of_file(const std::string& name) const {
    return fmt::format("{}piece/file/{}/", job, name);
  }
  [[nodiscard]] std::string turn(std::uint64_t id) const {
    return fmt::format("{}turn/{:016x}", job, id);
  }
  // All turns from `first` on, and those up to `last`.
  [[nodiscard]] KeyRange turns_from(std::uint64_t first) const {
    return {turn(first), keys_below(job + "turn/").to};
  }
  [[nodiscard]] KeyRange turns_to(std::uint64_t last) const { return {turn(0), turn(last + 1)}; }
  [[nodiscard]] std::string pieces_of_turn(std::uint64_t id) const {
    return fmt::format("{}piece/turn/{:016x}/", job, id);
  }
  [[nodiscard]] std::string pieces_of_snapshot(std::uint64_t id) const {
    return fmt::format("{}piece/snapshot/{:016x}/", job, id);
  }
  [[nodiscard]] KeyRange turn_pieces_to(std::uint64_t last) const {
    return {pieces_of_turn(0), pieces_of_turn(last + 1)};
  }
  [[nodiscard]] KeyRange snapshot_pieces_before(std::uint64_t id) const {
    return {pieces_of_snapshot(0), pieces_of_snapshot(id)};
  }
};

std::string piece(const std::string& pieces, std::size_t number) {
  return fmt::format("{}{:08x}", pieces, number);
}

// -------------------------------------------------------------------- values

struct StoredValue {
  StoredBody body;  // without bytes if they lie in pieces
  std::uint64_t pieces = 0;
};

template <class A, class T>
void stored_value(A& a, T& x) {
  a(x.body.id, x.body.checksum, x.pieces, x.body.bytes);
}

std::string value_of(const StoredValue& value) {
  shard_server::Writer out;
  stored_value(out, value);
  return out.take();
}

Result<StoredValue> read_value(const KeyValue& key) {
  StoredValue value;
  shard_server::Reader in(key.value);
  stored_value(in, value);
  if (in.ok() && in.at_end()) return value;
  return fail(ErrorKind::kCorrupt, "key {} cannot be read ({} bytes)", key.key, key.value.size());
}

struct Meta {
  std::uint64_t incarnation = 0;
  Revision written = 0;  // 0: there is none
};

Result<Meta> read_meta(const KeyValue& key) {
  Meta meta{0, key.changed};
  std::uint64_t format = 0;
  const char* const end = key.value.data() + key.value.size();
  auto at = std::from_chars(key.value.data(), end, format);
  if (at.ec == std::errc() && format != kFormat) {
    return fail(ErrorKind::kCorrupt,
                "its format is {}, this build reads {}: use the release that wrote it", format,
                kFormat);
  }
  if (at.ec == std::errc() && at.ptr != end && *at.ptr == ' ') {
    at = std::from_chars(at.ptr + 1, end, meta.incarnation);
    if (at.ec == std::errc() && at.ptr == end) return meta;
  }
  return fail(ErrorKind::kCorrupt, "key {} cannot be read: '{}'", key.key, key.value);
}

// ------------------------------------------------------------------- reading

Result<std::optional<KeyValue>> query_one(Etcd& etcd, const std::string& key, Revision at = 0) {
  ANTDT_TRY(Found found, etcd.query({{key}, 0, at}));
  if (found.keys.empty()) return std::nullopt;
  return std::move(found.keys.front());
}

// The value of `key`, with the bytes that lie in pieces.
Result<StoredBody> whole_body(Etcd& etcd, const KeyValue& key, const std::string& pieces,
                              Revision at) {
  ANTDT_TRY(StoredValue value, read_value(key));
  for (std::uint64_t i = 0; i < value.pieces; ++i) {
    const std::string name = piece(pieces, i);
    ANTDT_TRY(const auto found, query_one(etcd, name, at));
    if (!found) return fail(ErrorKind::kCorrupt, "key {} is missing", name);
    value.body.bytes += found->value;
  }
  return std::move(value.body);
}

Result<StoredJournal> read_at(Etcd& etcd, const Keys& keys, Revision at) {
  StoredJournal found;
  ANTDT_TRY(const auto snapshot, query_one(etcd, keys.snapshot(), at));
  if (snapshot) {
    ANTDT_TRY(const StoredValue value, read_value(*snapshot));
    ANTDT_TRY(found.snapshot,
              whole_body(etcd, *snapshot, keys.pieces_of_snapshot(value.body.id), at));
  }
  std::uint64_t next = found.snapshot ? found.snapshot->id + 1 : 1;
  for (bool more = true; more;) {
    ANTDT_TRY(Found page, etcd.query({keys.turns_from(next), kPage, at}));
    for (const KeyValue& key : page.keys) {
      ANTDT_TRY(const StoredValue value, read_value(key));
      ANTDT_TRY(StoredBody turn, whole_body(etcd, key, keys.pieces_of_turn(value.body.id), at));
      next = turn.id + 1;
      found.turns.push_back(std::move(turn));
    }
    more = page.more && !page.keys.empty();
  }
  return found;
}

// ------------------------------------------------------------------- writing

constexpr const char* kStandsStill = "etcd does not answer, tried again until it does: ";

class EtcdJournal final : public shard_server::JournalStore {
 public:
  EtcdJournal(std::unique_ptr<Etcd> etcd, EtcdJournalOptions options)
      : options_(std::move(options)),
        name_(fmt::format("journal of job {} in {}", options_.job, options_.where)),
        keys_(options_.job),
        etcd_(std::move(etcd)) {}
  // The next job daemon need not wait for the lease to end.
  ~EtcdJournal() override {
    held_.reset();
    if (lease_ != 0) static_cast<void>(etcd_->end_lease(lease_).has_value());
  }
  EtcdJournal(const EtcdJournal&) = delete;
  EtcdJournal& operator=(const EtcdJournal&) = delete;

  Status take_over();

  const std::string& name() const override { return name_; }
  Incarnation incarnation() const override { return incarnation_; }
  Result<StoredJournal> read() override;
  Status put_turn(std::uint64_t id, std::uint64_t checksum, std::string_view bytes) override;
  Status replace_snapshot(std::uint64_t through, std::uint64_t checksum,
                          std::string_view bytes) override;
  Status keep_file(const std::string& name, std::string_view bytes) override;
  bool has_lapsed() const override { return !held_ || held_->has_ended(); }
  Status renew() override;

 private:
  struct Present {
    std::optional<KeyValue> lock;
    Meta meta;
  };
  Result<Present> look();
  // Writes meta, if it is still as it was found, and the lock, for an incarnation. Whether that was
  // done; not, if somebody else wrote meta meanwhile.
  Result<bool> try_to_take(const Meta& found, Incarnation incarnation);
  Status try_to_renew();
  tl::unexpected<Error> not_ours() const;
  // Carries out the changes under the lock, however long that takes.
  Result<Revision> write(std::vector<Change> changes);
  // The same for a put that must not be repeated: only if its key is as `before` says.
  Result<Revision> write_once(const Put& put, Revision before, std::vector<Change> more);
  // The same for one attempt.
  Result<ChangeAnswer> change(const GuardedChange& change);
  Status confirm();
  // What `request` answers, tried again until etcd answers.
  template <class Request>
  auto until_answered(Request request) -> decltype(request());
  // Writes the pieces if there must be any; then `key` is ready to be put with the value returned.
  Result<std::string> write_pieces(const StoredBody& body, std::string_view bytes,
                                   const std::string& pieces);
  void say_once(std::string& said, const std::string& text);

  EtcdJournalOptions options_;
  std::string name_;
  Keys keys_;
  std::unique_ptr<Etcd> etcd_;
  std::unique_ptr<HeldLease> held_;
  LeaseId lease_ = 0;
  Revision lock_written_ = 0;
  Revision snapshot_written_ = 0;  // 0: there is none
  Incarnation incarnation_;
  std::string trouble_;  // that was told last
};

void EtcdJournal::say_once(std::string& said, const std::string& text) {
  if (said == text) return;
  said = text;
  options_.tell(fmt::format("{}: {}", name_, text));
}

Result<EtcdJournal::Present> EtcdJournal::look() {
  Present present;
  ANTDT_TRY(const auto meta, query_one(*etcd_, keys_.meta()));
  if (meta) {
    ANTDT_TRY(present.meta, read_meta(*meta));
  } else {
    present.meta.incarnation = options_.first_incarnation.value - 1;
  }
  ANTDT_TRY(present.lock, query_one(*etcd_, keys_.lock()));
  return present;
}

// The lock's value: who holds it, for people; the lock file that the holder holds; and a random
// number, by which an opening recognises its own lock if the answer was lost.
struct LockValue {
  std::string holder, file_lock;
};

LockValue read_lock(const std::string& value) {
  const std::size_t first = value.find('\n');
  if (first == std::string::npos) return {value, {}};
  const std::size_t second = value.find('\n', first + 1);
  return {value.substr(0, first), value.substr(first + 1, second - first - 1)};
}

Result<bool> EtcdJournal::try_to_take(const Meta& found, Incarnation incarnation) {
  ANTDT_TRY(const LeaseId lease, etcd_->grant_lease(options_.lease));
  std::random_device random;
  const std::string mine =
      fmt::format("{}\n{}\n{:08x}{:08x}", options_.holder, options_.file_lock, random(), random());
  const std::string next = fmt::format("{} {}", kFormat, incarnation);
  const auto taken = etcd_->change(
      {{{keys_.meta(), found.written}}, {Put{keys_.meta(), next}, Put{keys_.lock(), mine, lease}}});
  bool is_ours = taken && taken->done;
  Revision written = taken ? taken->revision : 0;
  if (!taken && taken.error().kind == ErrorKind::kUnreachable) {
    ANTDT_TRY(const auto lock, query_one(*etcd_, keys_.lock()));
    is_ours = lock && lock->value == mine;
    written = is_ours ? lock->changed : 0;
  } else if (!taken && taken.error().kind != ErrorKind::kRefused) {  // refused: the lease has ended
    return tl::unexpected<Error>(taken.error());
  }
  if (!is_ours) {
    static_cast<void>(etcd_->end_lease(lease).has_value());
    return false;
  }
  lease_ = lease;
  lock_written_ = written;
  incarnation_ = incarnation;
  held_ = options_.hold(lease);
  return true;
}

Status EtcdJournal::take_over() {
  MonoTime answered = options_.now(), held_from = MonoTime::max();
  std::string said;
  for (;; options_.wait(kRetryAfter)) {
    const auto present = look();
    if (present) {
      const LockValue lock = present->lock ? read_lock(present->lock->value) : LockValue{};
      const bool has_ended = !options_.file_lock.empty() && lock.file_lock == options_.file_lock;
      if (present->lock && !has_ended) {
        answered = options_.now();
        if (answered < held_from) held_from = answered;
        if (!options_.waits_for_lease ||
            answered - held_from > options_.lease + options_.patience) {
          return fail(ErrorKind::kAborted,
                      "the job daemon on {} runs this job and is alive: watch the job there, or "
                      "stop it there before it is resumed here",
                      lock.holder);
        }
        say_once(said,
                 fmt::format("waits for the lease of the job daemon on {} to end", lock.holder));
        continue;
      }
      const auto taken = try_to_take(present->meta, Incarnation{present->meta.incarnation + 1});
      if (taken && *taken) return {};
      if (taken) {
        answered = options_.now();
        continue;
      }
      if (taken.error().kind != ErrorKind::kUnreachable) {
        return tl::unexpected<Error>(taken.error());
      }
      said = taken.error().message;
    } else if (present.error().kind != ErrorKind::kUnreachable) {
      return tl::unexpected<Error>(present.error());
    } else {
      said = present.error().message;
    }
    if (options_.now() - answered > options_.patience) {
      return fail(ErrorKind::kUnreachable, "etcd does not answer ({})", said);
    }
  }
}

Result<StoredJournal> EtcdJournal::read() {
  ANTDT_TRY(const auto snapshot, query_one(*etcd_, keys_.snapshot()));
  if (snapshot) snapshot_written_ = snapshot->changed;
  return read_at(*etcd_, keys_, 0);
}

tl::unexpected<Error> EtcdJournal::not_ours() const {
  return fail(ErrorKind::kRefused,
              "another job daemon took over this run (this one is incarnation {}): this one must "
              "end",
              incarnation_);
}

template <class Request>
auto EtcdJournal::until_answered(Request request) -> decltype(request()) {
  for (;; options_.wait(kRetryAfter)) {
    auto answer = request();
    if (answer) trouble_.clear();
    if (answer || answer.error().kind != ErrorKind::kUnreachable) return answer;
    say_once(trouble_, kStandsStill + answer.error().message);
  }
}

Status EtcdJournal::renew() {
  return until_answered([this] { return try_to_renew(); });
}

// Who takes the job over writes meta and lock in one transaction, so meta alone says whether that
// happened.
Status EtcdJournal::try_to_renew() {
  ANTDT_TRY(const Present present, look());
  if (present.meta.incarnation != incarnation_.value) return not_ours();
  held_.reset();
  ANTDT_TRY(const bool taken, try_to_take(present.meta, incarnation_));
  // Perhaps by another one, which the next look will tell.
  if (!taken) return fail(ErrorKind::kUnreachable, "the lease was not taken again");
  options_.tell(name_ + ": the lease had ended and nobody had taken the job over: taken again");
  return {};
}

// An answer may be late: the change was carried out, and since then the lease has ended and another
// job daemon has begun. Who waited long for the answer asks once more whether the lock is still its
// own, before anything depends on the change.
Result<ChangeAnswer> EtcdJournal::change(const GuardedChange& change) {
  const MonoTime asked = options_.now();
  ANTDT_TRY(const ChangeAnswer answer, etcd_->change(change));
  if (answer.done && options_.now() - asked > kLateAnswer) ANTDT_RETURN_IF_ERROR(confirm());
  return answer;
}

Status EtcdJournal::confirm() {
  for (;;) {
    const MonoTime asked = options_.now();
    ANTDT_TRY(const auto lock, query_one(*etcd_, keys_.lock()));
    if (!lock || lock->changed != lock_written_) return try_to_renew();
    if (options_.now() - asked <= kLateAnswer) return {};
  }
}

Result<Revision> EtcdJournal::write(std::vector<Change> changes) {
  for (;;) {
    ANTDT_TRY(const ChangeAnswer answer, until_answered([&] {
                return change({{{keys_.lock(), lock_written_}}, changes});
              }));
    if (answer.done) return answer.revision;
    ANTDT_RETURN_IF_ERROR(renew());
  }
}

Result<Revision> EtcdJournal::write_once(const Put& put, Revision before,
                                         std::vector<Change> more) {
  more.emplace_back(put);
  for (;;) {
    ANTDT_TRY(const ChangeAnswer answer, until_answered([&] {
                return change({{{keys_.lock(), lock_written_}, {put.key, before}}, more});
              }));
    if (answer.done) return answer.revision;
    // Perhaps an earlier attempt was carried out, and its answer was lost.
    ANTDT_TRY(const auto found, until_answered([&] { return query_one(*etcd_, put.key); }));
    if (found && found->changed != before && found->value == put.value) return found->changed;
    ANTDT_RETURN_IF_ERROR(renew());
  }
}

Result<std::string> EtcdJournal::write_pieces(const StoredBody& body, std::string_view bytes,
                                              const std::string& pieces) {
  StoredValue value{body, 0};
  if (bytes.size() <= kPieceBytes) {
    value.body.bytes = bytes;
    return value_of(value);
  }
  for (; !bytes.empty(); ++value.pieces) {
    const std::string_view next = bytes.substr(0, kPieceBytes);
    ANTDT_RETURN_IF_ERROR(write({Put{piece(pieces, value.pieces), next}}));
    bytes.remove_prefix(next.size());
  }
  return value_of(value);
}

Status EtcdJournal::put_turn(std::uint64_t id, std::uint64_t checksum, std::string_view bytes) {
  ANTDT_TRY(const std::string value,
            write_pieces({id, checksum, {}}, bytes, keys_.pieces_of_turn(id)));
  ANTDT_RETURN_IF_ERROR(write({Put{keys_.turn(id), value}}));
  return {};
}

Status EtcdJournal::keep_file(const std::string& name, std::string_view bytes) {
  ANTDT_TRY(const std::string value, write_pieces({}, bytes, keys_.pieces_of_file(name)));
  ANTDT_RETURN_IF_ERROR(write({Put{keys_.file(name), value}}));
  return {};
}

Status EtcdJournal::replace_snapshot(std::uint64_t through, std::uint64_t checksum,
                                     std::string_view bytes) {
  ANTDT_TRY(const std::string value,
            write_pieces({through, checksum, {}}, bytes, keys_.pieces_of_snapshot(through)));
  ANTDT_TRY(const Revision written,
            write_once({keys_.snapshot(), value}, snapshot_written_,
                       {Delete{keys_.turns_to(through)}, Delete{keys_.turn_pieces_to(through)},
                        Delete{keys_.snapshot_pieces_before(through)}}));
  const Revision previous = std::exchange(snapshot_written_, written);
  if (previous == 0) return {};
  // Without it etcd only keeps more than it needs to. kRefused: somebody else compacted further.
  const Status compacted = etcd_->compact(previous);
  if (!compacted && compacted.error().kind != ErrorKind::kRefused) {
    say_once(trouble_, "former revisions were not compacted: " + compacted.error().message);
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<shard_server::JournalStore>> open_etcd_journal(std::unique_ptr<Etcd> etcd,
                                                                      EtcdJournalOptions options) {
  auto journal = std::make_unique<EtcdJournal>(std::move(etcd), std::move(options));
  if (const Status taken = journal->take_over(); !taken) {
    return fail(taken.error().kind, "{}: {}", journal->name(), taken.error().message);
  }
  return journal;
}

Status check_access(Etcd& etcd) {
  return etcd.query({keys_below(Keys("").job), 1}).map([](const auto&) {});
}

Result<JobInEtcd> look_at_job(Etcd& etcd, const std::string& job) {
  const Keys keys(job);
  ANTDT_TRY(const auto meta, query_one(etcd, keys.meta()));
  ANTDT_TRY(const auto lock, query_one(etcd, keys.lock()));
  const LockValue held = lock ? read_lock(lock->value) : LockValue{};
  return JobInEtcd{meta.has_value(), held.holder, held.file_lock};
}

Result<std::string> read_run_file(Etcd& etcd, const std::string& job, const std::string& name) {
  const Keys keys(job);
  ANTDT_TRY(const auto found, query_one(etcd, keys.file(name)));
  if (!found) return fail(ErrorKind::kCorrupt, "etcd has no file {} of job {}", name, job);
  ANTDT_TRY(const StoredBody body, whole_body(etcd, *found, keys.pieces_of_file(name), 0));
  return body.bytes;
}

Result<StoredJournal> read_etcd_journal(Etcd& etcd, const std::string& job) {
  const Keys keys(job);
  for (int reading = 1;; ++reading) {
    ANTDT_TRY(const Found meta, etcd.query({{keys.meta()}}));
    if (meta.keys.empty()) return fail(ErrorKind::kUsage, "etcd has no journal of job {}", job);
    ANTDT_RETURN_IF_ERROR(read_meta(meta.keys.front()));
    auto found = read_at(etcd, keys, meta.revision);
    const bool was_compacted = !found && found.error().kind == ErrorKind::kRefused;
    if (!was_compacted || reading == kReadings) return found;
  }
}

}  // namespace antdt::store
