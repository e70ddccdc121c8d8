// The state of a server's machine without its rows, as one message. Replicas of workers are in it
// (ReplicaMean), whose mean the rows follow. A process that becomes the server's backup goes on from
// it (state_copy.h).
//
// Two things are left out: the senders that wait for an answer, because they ask again; and which
// unacknowledged messages were sent already, because all of them are sent again.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/wire/servers/ps_messages.h"

namespace antdt::ps {

// The means of workers' replicas (ReplicaMean). Keys and values are bytes, as in wire::PsRows;
// `sum`: 64-bit floats, little endian.
struct ReplicaMeanImage {
  struct Replica {
    wire::PsMember member;
    std::uint64_t exchange = 0;
    std::string values;
    ANTDT_PART {
      v("member", m.member);
      v("exchange", m.exchange);
      v("values", m.values);
    }
  };
  std::uint32_t table = 0;
  std::string keys;
  std::uint64_t exchanges = 0;
  std::string sum;
  std::vector<Replica> replicas;
  ANTDT_PART {
    v("table", m.table);
    v("keys", m.keys);
    v("exchanges", m.exchanges);
    v("sum", m.sum);
    v("replicas", m.replicas);
  }
};

struct ServerImage {
  struct Staged {
    std::uint64_t number = 0;
    std::uint64_t version = 0;
    std::vector<wire::PsRows> rows;
    ANTDT_PART {
      v("number", m.number);
      v("version", m.version);
      v("rows", m.rows);
    }
  };
  struct Worker {
    wire::PsMember member;
    std::uint64_t applied = 0;
    bool idle = false;
    std::vector<Staged> staged;
    ANTDT_PART {
      v("member", m.member);
      v("applied", m.applied);
      v("idle", m.idle);
      v("staged", m.staged);
    }
  };
  struct Home {
    std::uint32_t home = 0;
    std::uint64_t decided = 0;
    std::uint64_t marked = 0;
    std::vector<wire::PsDecision> next;
    ANTDT_PART {
      v("home", m.home);
      v("decided", m.decided);
      v("marked", m.marked);
      v("next", m.next);
    }
  };
  std::optional<wire::PsOpen> open;  // empty: no worker has opened it
  std::uint64_t version = 0;
  std::vector<Home> homes;
  std::uint64_t newest_cut = 0;
  std::uint64_t cuts_made = 0;
  std::vector<Worker> workers;
  std::vector<wire::PsMember> left;
  std::uint64_t stale_pushes = 0;
  std::uint64_t stale_sum = 0;
  std::uint64_t stale_most = 0;
  std::vector<ReplicaMeanImage> means;  // by table
  ANTDT_PART {
    v("open", m.open);
    v("version", m.version);
    v("homes", m.homes);
    v("newest_cut", m.newest_cut);
    v("cuts_made", m.cuts_made);
    v("workers", m.workers);
    v("left", m.left);
    v("stale_pushes", m.stale_pushes);
    v("stale_sum", m.stale_sum);
    v("stale_most", m.stale_most);
    v("means", m.means);
  }
};

struct CloserImage {
  struct Worker {
    wire::PsPlaces places;
    bool idle = false;
    std::optional<wire::PsCommit> pending;
    wire::PsDecided last;
    ANTDT_PART {
      v("places", m.places);
      v("idle", m.idle);
      v("pending", m.pending);
      v("last", m.last);
    }
  };
  std::uint32_t backups = 0;
  std::uint64_t decisions = 0;
  std::uint64_t updates = 0;
  std::uint64_t cut = 0;
  std::uint64_t last_cut = 0;
  std::vector<Worker> workers;
  std::vector<wire::PsPlaces> revoked;
  std::uint64_t applied = 0;
  std::uint64_t late = 0;
  std::uint64_t repeated = 0;
  ANTDT_PART {
    v("backups", m.backups);
    v("decisions", m.decisions);
    v("updates", m.updates);
    v("cut", m.cut);
    v("last_cut", m.last_cut);
    v("workers", m.workers);
    v("revoked", m.revoked);
    v("applied", m.applied);
    v("late", m.late);
    v("repeated", m.repeated);
  }
};

struct DistributionImage {
  struct Peer {
    std::uint32_t server = 0;
    std::uint64_t acknowledged = 0;
    ANTDT_PART {
      v("server", m.server);
      v("acknowledged", m.acknowledged);
    }
  };
  std::vector<Peer> peers;
  std::vector<wire::PsDecision> decisions;
  ANTDT_PART {
    v("peers", m.peers);
    v("decisions", m.decisions);
  }
};

struct CutOrdersImage {
  struct Cut {
    wire::PsSaved saved;
    bool begun = false;
    bool done = false;
    ANTDT_PART {
      v("saved", m.saved);
      v("begun", m.begun);
      v("done", m.done);
    }
  };
  std::vector<Cut> cuts;
  ANTDT_PART { v("cuts", m.cuts); }
};

struct NodeImage {
  std::uint32_t backups = 0;
  double rate = 1;
  ServerImage server;
  CloserImage closer;
  DistributionImage distribution;
  CutOrdersImage cuts;
  ANTDT_PART {
    v("backups", m.backups);
    v("rate", m.rate);
    v("server", m.server);
    v("closer", m.closer);
    v("distribution", m.distribution);
    v("cuts", m.cuts);
  }
};

}  // namespace antdt::ps
