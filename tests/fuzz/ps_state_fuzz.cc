// Input: the messages of a primary to a process that joins as a backup: the pieces of a state, and
// the events behind it. Then the backup is promoted, and goes on.
#include <algorithm>
#include <deque>
#include <string>
#include <variant>

#include "core/wire/codec.h"
#include "tests/fuzz/support/fuzz.h"
#include "tests/fuzz/support/ps_tables.h"
#include "tests/trainer/ps/stepped.h"
#include "trainer/ps/replica/copied.h"
#include "trainer/ps/replica/replica.h"
#include "trainer/ps/rows/rows.h"

namespace antdt::fuzz {
namespace {

using namespace antdt::ps;

// The rows of a table in a hostile image are at most this wide.
constexpr std::uint32_t kWidest = 64;

// Reads and writes at once what the shell would do later. Returns why the process cannot be a
// backup; empty if it can.
std::string step(Replica& replica, const replica::Input& event) {
  std::string broken;
  std::deque<replica::Input> events{event};
  for (; !events.empty(); events.pop_front()) {
    for (const replica::Effect& effect : stepped(replica, events.front())) {
      if (const auto* why = std::get_if<replica::BreakUp>(&effect)) broken = why->error;
      const auto* of_node = std::get_if<node::Effect>(&effect);
      if (of_node == nullptr) continue;
      if (std::holds_alternative<node::ReadSlices>(*of_node)) {
        events.emplace_back(node::Input(node::SlicesRead{}));
      } else if (const auto* cut = std::get_if<node::WriteSlices>(of_node)) {
        events.emplace_back(node::Input(node::WritingBegun{cut->number, 1, {}}));
        events.emplace_back(node::Input(node::SlicesWritten{cut->number, {}, {}}));
      }
    }
  }
  return broken;
}

// One message of the input; the numbers are those that are due.
bool hear(Replica& replica, Input& input, std::uint64_t& pieces, std::uint64_t& events) {
  const std::uint8_t what = input.byte();
  if (what % 2 == 0) {
    wire::PsImage image{1, 1, 0, ++pieces, input.byte(), {}, (what & 2) != 0};
    image.bytes = input.long_part();
    return step(replica, image).empty();
  }
  auto copied = wire::decode<wire::PsCopied>(input.long_part());
  if (!copied) return true;
  auto event = from_wire(*copied, Generation{1});
  if (!event) return true;
  event->view = 1;
  event->number = ++events;
  return step(replica, *event).empty();
}

void check_that_it_is_written_as_it_was_read(const ServerNode& node) {
  Replica again(ps_start(), replica::Role::kJoining);
  std::uint64_t pieces = 0;
  write_state(node, [&](const StatePiece& p) {
    const std::string broken =
        step(again, wire::PsImage{1, 1, 0, ++pieces, p.part, p.bytes, p.last});
    ANTDT_CHECK(broken.empty(), "piece {} of a state that was read cannot be: {}", pieces, broken);
  });
  ANTDT_CHECK(wire::encode(again.node().image()) == wire::encode(node.image()),
              "a state is written as another");
}

bool is_narrow(const Store& store) {
  return std::ranges::all_of(store.tables(), [](const auto& t) { return t.width <= kWidest; });
}

void go_on_with(Replica& replica) {
  const Asker worker{"peer", kPsWorker, 1};
  const auto ask = [&](node::Request request) {
    step(replica, node::Input(node::RequestHeard{worker, Generation{1}, std::move(request)}));
  };
  step(replica, replica::BecameAlone{2});
  wire::PsServe serve;
  serve.workers = {{kPsWorker.worker, kPsWorker.attempt}};
  step(replica, node::Input(node::ServeOrdered{serve}));
  const std::uint64_t version = replica.node().version();
  const Store* const store = replica.node().store();
  if (store != nullptr && is_narrow(*store) && !store->tables().empty()) {
    const std::vector<std::uint64_t> keys{1, 2};
    const std::vector<float> ones(2 * store->tables()[0].width, 1);
    ask(wire::PsPull{version, {{0, to_bytes(keys), {}}}});
    ask(wire::PsPush{7, version, {{0, to_bytes(keys), to_bytes(ones)}}});
  }
  ask(wire::PsCommit{7, version, 1, 0, 4, 2});
  ask(wire::PsIdle{});
  step(replica, node::Input(node::SlicesOrdered{{9, "checkpoints/9"}}));
  step(replica, node::Input(node::DecisionsApplied{1, {3}}));
  serve.leaving = std::exchange(serve.workers, {});
  step(replica, node::Input(node::ServeOrdered{serve}));
  step(replica, node::Input(node::TimePassed{}));
}

}  // namespace
}  // namespace antdt::fuzz

ANTDT_FUZZ_TARGET(ps_state)(const std::uint8_t* data, std::size_t size) {
  using namespace antdt;
  fuzz::Input input(data, size);
  ps::Replica joining(fuzz::ps_start(), ps::replica::Role::kJoining);
  std::uint64_t pieces = 0, events = 0;
  while (!input.empty()) {
    if (!fuzz::hear(joining, input, pieces, events)) return 0;
  }
  if (joining.role() != ps::replica::Role::kBackup) return 0;
  const ps::ServerNode& node = joining.node();
  if (!node.waits_for<ps::node::SlicesRead>() && !node.waits_for<ps::node::WritingBegun>()) {
    fuzz::check_that_it_is_written_as_it_was_read(node);
  }
  fuzz::go_on_with(joining);
  return 0;
}
