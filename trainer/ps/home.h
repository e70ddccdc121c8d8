// A parameter server as the home of workers: it decides which of their pushes count (closer.h),
// applies each decision here first, and tells the other servers until they have acknowledged it
// (distribution.h). It answers a worker that commits when the push is decided.
//
// Part of the ServerNode, which gives each call its server and collects what is to be answered.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/ids.h"
#include "core/result.h"
#include "core/wire/servers/ps_messages.h"
#include "trainer/ps/closer.h"
#include "trainer/ps/distribution.h"
#include "trainer/ps/server.h"

namespace antdt::ps {

class Home {
 public:
  // Server `index` of `servers`; `version`: how many updates were applied before the group.
  Home(Consistency consistency, std::uint32_t index, std::uint32_t servers, std::uint64_t version);

  // What a call changes besides the home itself.
  struct Turn {
    Server& server;
    std::vector<wire::PsDecision>& decided;
    std::vector<ReplyTo>& replies;
  };

  // Whether this server decides for that worker.
  [[nodiscard]] bool is_home_of(WorkerId worker) const;
  // Adds those of these workers whose home this is.
  void add_workers(const std::vector<Member>& workers, std::uint32_t backups, Turn turn);
  void revoke(const std::vector<wire::PsMember>& leaving, Turn turn);
  // What is applied of these workers.
  [[nodiscard]] std::vector<wire::PsPlaces> left(const std::vector<wire::PsMember>& members) const;

  void commit(const Asker& from, const wire::PsCommit& m, Turn turn);
  void idle(Member worker, Turn turn);
  void set_last_cut(std::uint64_t number, Turn turn);
  // Sends its marker. Returns whether it did: it is a home, and had not sent it before.
  [[nodiscard]] bool mark_cut(std::uint64_t number, const std::string& directory, Turn turn);
  // For all workers that it has heard of.
  [[nodiscard]] std::vector<wire::PsPlaces> places() const { return closer_.places(); }

  [[nodiscard]] const Closer::Counts& counts() const { return closer_.counts(); }
  // How many updates are decided, including those before the group.
  [[nodiscard]] std::uint64_t updates() const { return closer_.updates(); }
  [[nodiscard]] Distribution& distribution() { return distribution_; }

  [[nodiscard]] CloserImage closer_image() const { return closer_.image(); }
  [[nodiscard]] DistributionImage distribution_image() const { return distribution_.image(); }
  // This home must be new and have taken no input.
  [[nodiscard]] Status restore(const CloserImage& closer, const DistributionImage& distribution);

 private:
  void feed(const closer::Input& input, Turn turn);
  void answer(Member member, ServerReply body, Turn turn);

  Consistency consistency_;
  std::uint32_t index_;
  std::uint32_t servers_;
  Closer closer_;
  Distribution distribution_;
  std::map<Member, Asker> committing_;  // senders that wait for a decision
};

}  // namespace antdt::ps
