#include <fmt/format.h>

#include <algorithm>

#include "launcher/doctor/judge.h"

namespace antdt::launcher {
namespace {

// What a turn of the job daemon may wait for its journal.
constexpr std::uint64_t kSlowStoreUs = 20'000;

void judge_member(const StoreFacts& member, bool any_answers, Findings& findings) {
  Finding finding{
      Level::kOk,
      "this host",
      "store",
      fmt::format("the member of cluster.store at {}", member.member),
      fmt::format("it answers in {:.1f} ms", static_cast<double>(member.answer_us) / 1e3),
      "the job daemon writes its journal there before it answers a worker",
      ""};
  if (!member.error.empty()) {
    finding.level = any_answers ? Level::kWarning : Level::kError;
    finding.found = member.error;
    finding.why = any_answers ? "the others serve the job, and fewer of them may be lost"
                              : "no member can be used, so antdt run starts nothing";
    finding.advice = fmt::format(
        "etcdctl --endpoints={} endpoint health says more; see that it "
        "runs, and the firewalls, and compare cluster.store_ca, "
        "store_cert, store_user and store_prefix",
        member.member);
  } else if (member.answer_us > kSlowStoreUs) {
    finding.level = Level::kWarning;
    finding.why += ", so workers wait that long for records, and longer under load";
    finding.advice =
        "give etcd a disk of its own that syncs in under 10 ms, and members near this host";
  }
  findings.push_back(std::move(finding));
}

void judge_number(const Facts& facts, Findings& findings) {
  const std::size_t count = facts.store.size();
  if (count % 2 == 1 && count > 1) return;
  findings.push_back(
      {Level::kNote, "this host", "store", "the number of members in cluster.store",
       fmt::format("{}", count),
       count == 1 ? "the job daemon waits while that member is away, and its host must not be lost"
                  : "an even number of members tolerates no more losses than one member fewer",
       "let etcd have three members, or five, and name them all"});
}

}  // namespace

void judge_store(const Facts& facts, Findings& findings) {
  if (facts.store.empty()) return;
  const bool any_answers =
      std::ranges::any_of(facts.store, [](const auto& member) { return member.error.empty(); });
  for (const StoreFacts& member : facts.store) judge_member(member, any_answers, findings);
  judge_number(facts, findings);
}

}  // namespace antdt::launcher
