// The image of each part of a server's machine, and how each takes over an image after checking it.
#include "trainer/ps/replica/node_image.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "trainer/ps/rows/rows.h"
#include "trainer/ps/server_node.h"

namespace antdt::ps {
namespace {

Member member_of(const wire::PsMember& m) { return {m.worker, m.attempt}; }
wire::PsMember to_wire(Member m) { return {m.worker, m.attempt}; }

tl::unexpected<Error> wrong(std::string_view what) {
  return fail(ErrorKind::kCorrupt, "the image of a server is damaged: {}", what);
}

// Whether the decisions have consecutive numbers and can be applied.
bool follow(const std::vector<wire::PsDecision>& decisions) {
  for (std::size_t i = 0; i < decisions.size(); ++i) {
    const wire::PsDecision& d = decisions[i];
    if (d.number != decisions[0].number + i) return false;
    if (!d.pushes.empty() && !(d.weight > 0 && std::isfinite(d.weight))) return false;
  }
  return true;
}

bool rise(const std::vector<wire::PsRange>& ranges) {
  std::uint64_t end = 0;
  return std::ranges::all_of(ranges, [&](const wire::PsRange& r) {
    return r.from >= std::exchange(end, r.to) && r.from < r.to;
  });
}

}  // namespace

// ------------------------------------------------------------------------ server

ServerImage Server::image() const {
  ServerImage image;
  if (store_) image.open = open_;
  image.version = version_;
  for (const auto& [home, of] : homes_) {
    image.homes.push_back({home, of.decided, of.marked, {of.next.begin(), of.next.end()}});
  }
  image.newest_cut = newest_cut_;
  image.cuts_made = cuts_made_;
  for (const auto& [member, worker] : workers_) {
    auto& to = image.workers.emplace_back();
    to.member = to_wire(member);
    to.applied = worker.applied;
    to.idle = worker.idle;
    for (const auto& [number, staged] : worker.staged) {
      auto& push = to.staged.emplace_back();
      push.number = number;
      push.version = staged.version;
      for (const Part& part : staged.parts) {
        push.rows.push_back(
            {part.table, to_bytes(part.gradient.keys), to_bytes(part.gradient.values)});
      }
    }
  }
  for (const Member member : left_) image.left.push_back(to_wire(member));
  image.stale_pushes = staleness_.pushes;
  image.stale_sum = staleness_.sum;
  image.stale_most = staleness_.most;
  for (const auto& [table, mean] : means_) {
    image.means.push_back(mean.image());
    image.means.back().table = table;
  }
  return image;
}

Status Server::restore(const ServerImage& image, std::uint32_t servers) {
  if (image.open) {
    ANTDT_TRY(auto specs, specs_in(*image.open));
    open_ = *image.open;
    store_.emplace(std::move(specs), open_.seed);
  }
  if (image.version < first_version_) return wrong("its updates");
  version_ = image.version;
  for (const ServerImage::Home& home : image.homes) {
    const bool next = home.next.empty() || home.next.front().number == home.decided + 1;
    if (home.home >= servers || !next || !follow(home.next)) return wrong("its decisions");
    homes_[home.home] = {home.decided, home.marked, {home.next.begin(), home.next.end()}};
  }
  newest_cut_ = image.newest_cut;
  cuts_made_ = image.cuts_made;
  for (const ReplicaMeanImage& from : image.means) {
    if (!store_ || from.table >= store_->tables().size()) return wrong("a mean without its table");
    ANTDT_TRY(auto mean, ReplicaMean::restored(from, store_->tables()[from.table].width));
    means_.emplace(from.table, std::move(mean));
  }
  for (const ServerImage::Worker& from : image.workers) {
    Worker& worker = workers_[member_of(from.member)];
    worker.applied = from.applied;
    worker.idle = from.idle;
    if (from.staged.size() > kMostStaged + 1) return wrong("what is staged");
    for (const ServerImage::Staged& staged : from.staged) {
      if (!store_) return wrong("a push without tables");
      ANTDT_TRY(auto parts, parts_of(staged.rows));
      ANTDT_RETURN_IF_ERROR(begin_means(parts));
      worker.staged[staged.number] = {staged.version, std::move(parts)};
    }
  }
  for (const wire::PsMember& m : image.left) left_.insert(member_of(m));
  staleness_ = {image.stale_pushes, image.stale_sum, image.stale_most};
  return {};
}

// ------------------------------------------------------------------------ closer

CloserImage Closer::image() const {
  CloserImage image;
  image.backups = backups_;
  image.decisions = decisions_;
  image.updates = updates_;
  image.cut = cut_;
  image.last_cut = last_cut_;
  for (const auto& [member, worker] : workers_) {
    image.workers.push_back({places(member), worker.idle, worker.pending, worker.last});
  }
  for (const auto& [member, places] : revoked_) image.revoked.push_back(places);
  image.applied = counts_.applied;
  image.late = counts_.late;
  image.repeated = counts_.repeated;
  return image;
}

Status Closer::restore(const CloserImage& image) {
  backups_ = image.backups;
  decisions_ = image.decisions;
  if (image.updates < first_ || image.updates - first_ > image.decisions)
    return wrong("the updates it has decided");
  updates_ = image.updates;
  cut_ = image.cut;
  last_cut_ = image.last_cut;
  for (const wire::PsPlaces& places : image.revoked) {
    if (!rise(places.applied)) return wrong("the places of a worker that left");
    revoked_[{places.worker, places.attempt}] = places;
  }
  for (const CloserImage::Worker& from : image.workers) {
    Worker worker{from.idle, {}, from.last, from.places.phase, from.places.applied};
    const bool commits = !from.pending || sound(worker, *from.pending);
    if (!rise(worker.applied) || !commits) return wrong("the places of a worker");
    worker.pending = from.pending;
    const Member member{from.places.worker, from.places.attempt};
    if (revoked_.contains(member)) return wrong("a worker that left and is there");
    workers_[member] = std::move(worker);
  }
  counts_ = {image.applied, image.late, image.repeated};
  return {};
}

// ------------------------------------------------------------------ distribution

DistributionImage Distribution::image() const {
  DistributionImage image;
  for (const Peer& peer : peers_) image.peers.push_back({peer.server, peer.acknowledged});
  image.decisions.assign(decisions_.begin(), decisions_.end());
  return image;
}

Status Distribution::restore(const DistributionImage& image) {
  if (image.peers.size() != peers_.size()) return wrong("the servers it tells");
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    if (image.peers[i].server != peers_[i].server) return wrong("the servers it tells");
    peers_[i].acknowledged = image.peers[i].acknowledged;
  }
  if (!follow(image.decisions)) return wrong("what it has decided");
  decisions_.assign(image.decisions.begin(), image.decisions.end());
  return {};
}

// ------------------------------------------------------------------- checkpoints

CutOrdersImage CutOrders::image() const {
  CutOrdersImage image;
  for (const auto& [number, cut] : cuts_) {
    const bool begun = cut.state == State::kSaving || cut.state == State::kConcluded;
    image.cuts.push_back({cut.saved, begun, cut.has_outcome()});
  }
  return image;
}

Status CutOrders::restore(const CutOrdersImage& image) {
  if (image.cuts.size() > kKept) return wrong("its checkpoints");
  for (const CutOrdersImage::Cut& cut : image.cuts) {
    Cut& known = cuts_[cut.saved.number] = {cut.saved, State::kKnown};
    if (cut.begun) known.begin();
    if (cut.done) known.conclude();
  }
  return {};
}

// -------------------------------------------------------------------------- node

NodeImage ServerNode::image() const {
  return {start_.backups, rate_, server_.image(), home_.closer_image(), home_.distribution_image(),
          cuts_.image()};
}

Status ServerNode::restore(const NodeImage& image) {
  // The next decision of a home must follow those that it applied itself, and those it has still to
  // send.
  const auto own = std::ranges::find(image.server.homes, start_.index, &ServerImage::Home::home);
  const std::uint64_t applied =
      own == image.server.homes.end() ? 0 : own->decided + own->next.size();
  const auto& told = image.distribution.decisions;
  if (applied != image.closer.decisions || (!told.empty() && told.back().number != applied)) {
    return wrong("its own decisions");
  }
  start_.backups = image.backups;
  ANTDT_RETURN_IF_ERROR(server_.restore(image.server, start_.servers));
  if (is_rate(image.rate)) server_.set_rate(rate_ = image.rate);
  ANTDT_RETURN_IF_ERROR(home_.restore(image.closer, image.distribution));
  return cuts_.restore(image.cuts);
}

}  // namespace antdt::ps
