// A job's journal in etcd (shard_server/journal/journal_store.h has the promises).
//
// Keys, below "v1/jobs/<job>/", before which the client puts EtcdAddress::prefix ("/antdt/"):
//
//   meta                     "1 7": format and incarnation
//   lock                     who writes, as text; deleted when the writer's lease ends
//   turn/<id>                a turn, <id> in 16 hexadecimal digits
//   snapshot                 the snapshot
//   file/<name>              a file of the run, for job daemons on other hosts
//   piece/turn/<id>/<n>      pieces of a turn or of a snapshot that is too large for one request
//   piece/snapshot/<id>/<n>  of etcd (1.5 MiB by default)
//   piece/file/<name>/<n>
//
// The value of a turn, a snapshot or a file is (id, checksum, number of pieces, bytes), as
// archive.h encodes them; the bytes are empty if they lie in pieces. The pieces are written before
// what names them.
//
// Fencing. Opening writes meta (the incarnation plus one) and lock, with a new lease, in one
// transaction that fails if meta was written by anybody since it was read. Every later write is a
// transaction that does nothing unless the lock is still the one that this opening wrote. So once
// somebody else has opened the journal, no write of the older one does anything, however late it
// arrives.
//
// A lease may end although its holder is alive: its host or etcd stood still. The next write then
// changes nothing, and the holder takes the lock again, with a new lease, if nobody else has begun
// an incarnation. It writes meta anew, so that of several who have seen the lock free only one gets
// it.
//
// Opening waits while another's lease holds the lock, unless it is known that the holder has ended:
// the run directory's lock file, which only one process can hold, is the same.
//
// When etcd does not answer. A write may have been carried out or not; the same write is tried
// again until etcd answers, and one that arrives later still does no harm:
//   - A turn, a file or a piece gets the same value again. If a snapshot has deleted it meanwhile,
//     it is there again; readers ignore turns that the snapshot contains, and the next snapshot
//     deletes them.
//   - A snapshot would bring back one whose turns are gone. So it is written only if the snapshot
//     is still the one before it.
//
// An answer that comes late (half a second) is not trusted before the lock is found to be the
// writer's own still.
//
// What etcd keeps of former revisions is compacted up to the previous snapshot, after each
// snapshot.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "shard_server/journal/journal_store.h"
#include "store/etcd.h"
#include "store/lease.h"

namespace antdt::store {

struct EtcdJournalOptions {
  std::string job;        // id of the job
  std::string where;      // "etcd (h1:2379)", for messages
  std::string holder;     // "host h1, process 17": who opens it, for the messages of others
  std::string file_lock;  // identity of the lock file that this process holds; empty: none
  std::chrono::seconds lease{5};
  bool waits_for_lease = true;       // of another holder; else kRefused at once
  Incarnation first_incarnation{1};  // with which a new journal begins
  // How long opening waits for etcd's first answer, and how long, beyond a lease's length, for
  // another holder's lease to end. Time counts, and not tries, which may take long.
  Duration patience = std::chrono::seconds(5);
  // Keeps the lease alive from now on.
  std::function<std::unique_ptr<HeldLease>(LeaseId)> hold;
  std::function<void(Duration)> wait;  // lets time pass
  std::function<MonoTime()> now;
  std::function<void(const std::string&)> tell;  // a line for the log
};

// Errors: kUnreachable if etcd does not answer; kAborted if another job daemon holds the lock and
// stays alive; kUsage if etcd does not let this client write; kCorrupt.
[[nodiscard]] Result<std::unique_ptr<shard_server::JournalStore>> open_etcd_journal(
    std::unique_ptr<Etcd> etcd, EtcdJournalOptions options);

// Whether etcd answers and lets this client read where journals are. kUnreachable, kUsage.
[[nodiscard]] Status check_access(Etcd& etcd);

struct JobInEtcd {
  bool exists = false;
  std::string holder;     // of the lock; empty: nobody
  std::string file_lock;  // the holder's
};
[[nodiscard]] Result<JobInEtcd> look_at_job(Etcd& etcd, const std::string& job);
// The newest that keep_file() kept. kCorrupt if there is none.
[[nodiscard]] Result<std::string> read_run_file(Etcd& etcd, const std::string& job,
                                                const std::string& name);

// Reads what is stored without writing. A job may be using it. kUsage if etcd has no such job.
[[nodiscard]] Result<shard_server::StoredJournal> read_etcd_journal(Etcd& etcd,
                                                                    const std::string& job);

}  // namespace antdt::store
