#include "ctl/trace/hang.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace antdt::ctl::trace {
namespace {

using wire::TracedCall;

std::string list_of(const std::vector<WorkerId>& workers) {
  std::string text;
  for (const WorkerId w : workers) text += fmt::format("{}{}", text.empty() ? "" : ", ", w);
  return text;
}

// "all_reduce float32[1] #1412 (called from train.py:41 in main)"
std::string named(const TracedCall& call) {
  std::string text = fmt::format("{} #{}", call.name, call.number);
  if (!call.group.empty()) text += fmt::format(" of ranks {}", call.group);
  if (!call.where.empty()) text += fmt::format(" (called from {})", call.where);
  return text;
}

// The collective that a rank is in, if it is in one.
const TracedCall* inside(const RankFound& rank) {
  const bool told = rank.told && rank.told->inside && !rank.told->calls.empty();
  return told ? &rank.told->calls.back() : nullptr;
}

// What it called as the group's n-th; null: nothing, or so long ago that it is forgotten.
const TracedCall* call_of(const RankFound& rank, const std::string& group, std::uint64_t number) {
  if (!rank.told) return nullptr;
  const auto& calls = rank.told->calls;
  const auto found = std::ranges::find_if(
      calls, [&](const TracedCall& c) { return c.group == group && c.number == number; });
  return found == calls.end() ? nullptr : &*found;
}

std::uint64_t entered(const RankFound& rank, const std::string& group) {
  std::uint64_t newest = 0;
  if (!rank.told) return newest;
  for (const TracedCall& c : rank.told->calls) {
    if (c.group == group) newest = std::max(newest, c.number);
  }
  return newest;
}

// `group` is "0,2" or empty for all.
bool is_in(std::uint32_t rank, const std::string& group) {
  if (group.empty()) return true;
  return fmt::format(",{},", group).find(fmt::format(",{},", rank)) != std::string::npos;
}

// The first collective that ranks call by different names.
struct Mismatch {
  TracedCall usual;                      // what most called, or some if there is no majority
  std::vector<const RankFound*> others;  // who called something else
  bool decided = true;                   // most agree
};
std::optional<Mismatch> first_mismatch(const std::vector<RankFound>& ranks) {
  std::map<std::pair<std::string, std::uint64_t>,
           std::map<std::string, std::vector<const RankFound*>>>
      by_call;
  for (const RankFound& rank : ranks) {
    if (!rank.told) continue;
    for (const TracedCall& c : rank.told->calls) {
      by_call[{c.group, c.number}][c.name].push_back(&rank);
    }
  }
  for (const auto& [which, by_name] : by_call) {
    if (by_name.size() < 2) continue;
    std::size_t all = 0;
    const std::vector<const RankFound*>* most = nullptr;
    for (const auto& [name, who] : by_name) {
      all += who.size();
      if (most == nullptr || who.size() > most->size()) most = &who;
    }
    Mismatch found{*call_of(*most->front(), which.first, which.second), {}, 2 * most->size() > all};
    for (const auto& [name, who] : by_name) {
      if (&who != most) found.others.insert(found.others.end(), who.begin(), who.end());
    }
    std::ranges::sort(found.others, {}, [](const RankFound* r) { return r->worker; });
    return found;
  }
  return {};
}

// What a rank does that is not in `wanted`.
std::string instead(const RankFound& rank, const TracedCall& wanted) {
  if (!rank.told) {
    return "it does not answer: its process is stopped, or something in it keeps Python's "
           "interpreter "
           "locked";
  }
  if (const TracedCall* called = call_of(rank, wanted.group, wanted.number)) {
    return fmt::format("it called {}{} in its place", called->name,
                       called->where.empty() ? "" : " at " + called->where);
  }
  if (const TracedCall* in = inside(rank)) return fmt::format("it waits in {}", named(*in));
  return rank.told->where.empty() ? "it runs no Python code that can be named"
                                  : "it is at " + rank.told->where;
}

std::string never_entered(const std::vector<const RankFound*>& who, const TracedCall& call) {
  std::string text;
  for (const RankFound* rank : who) {
    text += text.empty() ? fmt::format("{} never entered {}: {}", rank->worker, named(call),
                                       instead(*rank, call))
                         : fmt::format("; neither did {}: {}", rank->worker, instead(*rank, call));
  }
  return text;
}

// Adds who waits to the hang's text.
void add_waiting(const std::vector<RankFound>& ranks, const std::set<WorkerId>& culprits,
                 const TracedCall& call, Hang& hang) {
  std::vector<WorkerId> in_it, elsewhere;
  for (const RankFound& rank : ranks) {
    const TracedCall* in = inside(rank);
    if (in == nullptr || culprits.contains(rank.worker)) continue;
    const bool same = in->group == call.group && in->number == call.number;
    (same ? in_it : elsewhere).push_back(rank.worker);
    hang.waits_s = std::max(hang.waits_s, rank.waits_s);
  }
  const auto add = [&](const std::vector<WorkerId>& who, const char* where) {
    if (who.empty()) return;
    hang.text += fmt::format("; {} wait{} {}", list_of(who), who.size() == 1 ? "s" : "", where);
  };
  add(in_it, "in it");
  add(elsewhere, "in other collectives");
}

std::vector<Hang::Stack> stacks_of(const std::vector<RankFound>& ranks) {
  std::vector<Hang::Stack> stacks;
  for (const RankFound& rank : ranks) {
    stacks.push_back(
        {rank.worker, rank.told ? rank.told->where : "", rank.told ? rank.told->stack : ""});
  }
  return stacks;
}

// The collective that most wait in; of several the earliest.
const TracedCall* usual_wait(const std::vector<RankFound>& ranks) {
  std::map<std::pair<std::string, std::uint64_t>, std::size_t> count;
  for (const RankFound& rank : ranks) {
    if (const TracedCall* in = inside(rank)) ++count[{in->group, in->number}];
  }
  const TracedCall* usual = nullptr;
  std::size_t most = 0;
  for (const RankFound& rank : ranks) {
    const TracedCall* in = inside(rank);
    if (in == nullptr) continue;
    const std::size_t here = count.at({in->group, in->number});
    if (here > most || (here == most && in->number < usual->number)) {
      usual = in;
      most = here;
    }
  }
  return usual;
}

Hang blame(const std::vector<RankFound>& ranks, const std::vector<const RankFound*>& who,
           const TracedCall& call) {
  Hang hang;
  std::set<WorkerId> culprits;
  for (const RankFound* rank : who) {
    hang.culprits.push_back(rank->worker);
    culprits.insert(rank->worker);
  }
  hang.text = never_entered(who, call);
  add_waiting(ranks, culprits, call, hang);
  hang.all_wait =
      std::ranges::all_of(ranks, [](const RankFound& r) { return inside(r) != nullptr; });
  hang.stacks = stacks_of(ranks);
  return hang;
}

// Of two ranks, or two halves, nobody can say which is right.
Hang undecided(const std::vector<RankFound>& ranks, const Mismatch& mismatch) {
  const TracedCall& call = mismatch.usual;
  std::vector<WorkerId> those;
  for (const RankFound& rank : ranks) {
    const TracedCall* called = call_of(rank, call.group, call.number);
    if (called != nullptr && called->name == call.name) those.push_back(rank.worker);
  }
  Hang hang = blame(ranks, {}, call);
  hang.waits_s = 0;
  hang.text = fmt::format("the ranks called different collectives: {} called {}", list_of(those),
                          named(call));
  for (const RankFound* rank : mismatch.others) {
    hang.text += fmt::format(", and {} {} in its place", rank->worker,
                             named(*call_of(*rank, call.group, call.number)));
  }
  return hang;
}

Hang explain(const std::vector<RankFound>& ranks, const Mismatch& mismatch) {
  return mismatch.decided ? blame(ranks, mismatch.others, mismatch.usual)
                          : undecided(ranks, mismatch);
}

}  // namespace

std::string told(const Hang& hang, double later_s) {
  std::string text = hang.text;
  if (hang.waits_s > 0) text += fmt::format(" for {:.0f} s", hang.waits_s + later_s);
  return hang.advice.empty() ? text : text + ": " + hang.advice;
}

Hang explain_hang(const std::vector<RankFound>& ranks) {
  if (const auto mismatch = first_mismatch(ranks)) return explain(ranks, *mismatch);
  const TracedCall* call = usual_wait(ranks);
  std::vector<const RankFound*> missing;
  if (call != nullptr) {
    for (const RankFound& rank : ranks) {
      if (!is_in(rank.said.rank, call->group)) continue;
      if (!rank.told || entered(rank, call->group) < call->number) missing.push_back(&rank);
    }
  }
  if (!missing.empty()) return blame(ranks, missing, *call);
  Hang hang;
  hang.all_wait =
      std::ranges::all_of(ranks, [](const RankFound& r) { return inside(r) != nullptr; });
  hang.stacks = stacks_of(ranks);
  if (call == nullptr) {
    for (const RankFound& rank : ranks) {
      if (!rank.told) hang.culprits.push_back(rank.worker);
    }
    hang.text = hang.culprits.empty() ? "no rank is in a collective any more"
                                      : fmt::format("{} did not answer", list_of(hang.culprits));
    return hang;
  }
  hang.text = fmt::format("every rank has entered {}, and it does not end", named(*call));
  add_waiting(ranks, {}, *call, hang);
  hang.advice = "look at the network between the hosts";
  return hang;
}

std::optional<Hang> explain_mismatch(const std::vector<RankFound>& ranks) {
  const auto mismatch = first_mismatch(ranks);
  if (!mismatch) return {};
  return explain(ranks, *mismatch);
}

}  // namespace antdt::ctl::trace
