#include "trainer/client/client_core.h"

#include <algorithm>
#include <type_traits>

#include "core/check.h"
#include "core/overloaded.h"

namespace antdt::client {

void ClientCore::step(const Input& input, MonoTime now, Effects& out) {
  std::visit([&](const auto& i) { on(i, now, out); }, input);
  if (welcome_ && !refusal_) {
    if (auto request = feed_.poll(now)) {
      out.emplace_back(SendMessage{request->generation, request->seq, std::move(request->fetch)});
    }
    if (!feed_.problem().empty()) refusal_ = Error{ErrorKind::kCorrupt, feed_.problem()};
  }
  check_invariants();
}

void ClientCore::check_invariants() const {
  ANTDT_CHECK(orders_.current() <= orders_.newest(),
              "an order of generation {} was given out, and the newest is {}", orders_.current(),
              orders_.newest());
}

std::optional<MonoTime> ClientCore::deadline() const {
  if (refusal_) return {};
  std::optional<MonoTime> first = welcome_ ? feed_.deadline() : std::nullopt;
  const auto consider = [&](std::optional<MonoTime> when) {
    if (when) first = first ? std::min(*first, *when) : *when;
  };
  if (greeting_) consider(greeting_->sent_at + kRepeatAfter);
  consider(orders_.repeat_at());
  consider(reports_.deadline());
  return first;
}

Known ClientCore::known() const {
  Known known{orders_.held_plan(),         checkpoint_ordered_, {},
              orders_.regroup_requested(), recorded_of_,        recorded_};
  if (const auto& leave = orders_.leave_requested()) known.leave = leave->code;
  return known;
}

// ------------------------------------------------------------------- what arrives

void ClientCore::on(const MessageReceived& input, MonoTime now, Effects& out) {
  const Overloaded hear_it{
      [&](const wire::WorkerWelcome& body) { hear(body, now); },
      [&](const wire::Refused& body) { hear(body, now, out); },
      [&](const wire::Grants& body) {
        hear_recorded(input.generation, body.recorded);
        feed_.on_grants(input.seq, body, now);
      },
      [&](const wire::Leave& body) { orders_.hear(input.generation, body, out); },
      [&](const wire::Injected& body) {
        if (body.number > injected_.number) injected_ = body;
      },
      [&](const wire::StackWanted& body) { stack_wanted_ = std::max(stack_wanted_, body.number); },
      [&](const auto&) {
        // Any other message of a membership that is over changes nothing.
        if (input.generation >= orders_.newest()) hear_of_membership(input, out);
      }};
  std::visit(hear_it, input.body);
}

void ClientCore::hear_of_membership(const MessageReceived& input, Effects& out) {
  const Overloaded hear_it{
      [&](const wire::Recall& body) {
        if (auto recalled = feed_.on_recall(input.generation, input.seq, body)) {
          out.emplace_back(SendMessage{input.generation, input.seq, std::move(*recalled)});
        }
      },
      [&](const wire::Plan& body) { orders_.hear_plan(body); },
      [&](const wire::CheckpointOrder& body) {
        checkpoint_ordered_ = std::max(checkpoint_ordered_, body.number);
      },
      [&](const auto& body) {
        if constexpr (std::is_constructible_v<Orders::Order, decltype(body)>) {
          orders_.hear(input.generation, body, out);
        }
      }};
  std::visit(hear_it, input.body);
}

void ClientCore::hear_recorded(Generation generation, Step step) {
  if (generation < recorded_of_) return;
  recorded_ = generation == recorded_of_ ? std::max(recorded_, step) : step;
  recorded_of_ = generation;
}

void ClientCore::on(const UnreadableReceived& input, MonoTime, Effects&) {
  if (refusal_) return;
  refusal_ =
      Error{ErrorKind::kCorrupt, fmt::format("the agent sent what cannot be read: {}", input.why)};
}

void ClientCore::hear(const wire::WorkerWelcome& welcome, MonoTime now) {
  greeting_.reset();
  if (welcome.version < wire::kMinVersion || welcome.version > wire::kMaxVersion) {
    refusal_ = Error{ErrorKind::kRefused,
                     fmt::format("the agent chose protocol version {}, this worker speaks {} to "
                                 "{}: install the same release on both",
                                 welcome.version, wire::kMinVersion, wire::kMaxVersion)};
    return;
  }
  if (!welcome_) reports_.begin_pulse(now);
  welcome_ = welcome;
}

void ClientCore::hear(const wire::Refused& refused, MonoTime now, Effects& out) {
  if (refused.code == wire::RefusalCode::kBusy || refused.code == wire::RefusalCode::kFull)
    return;  // the client repeats the request by itself
  if (refused.code == wire::RefusalCode::kUnknown && welcome_) return on(Greet{}, now, out);
  if (!refusal_) refusal_ = Error{ErrorKind::kRefused, refused.reason};
}

// ------------------------------------------------------------------- what the worker wants

void ClientCore::on(const Greet&, MonoTime now, Effects& out) {
  SendMessage hello{{}, 0, wire::Hello{wire::kMinVersion, wire::kMaxVersion, "antdt-client"}};
  greeting_ = Greeting{hello, now};
  out.emplace_back(std::move(hello));
}

void ClientCore::on(const TimePassed&, MonoTime now, Effects& out) {
  if (greeting_ && now >= greeting_->sent_at + kRepeatAfter) {
    greeting_->sent_at = now;
    out.emplace_back(greeting_->message);
  }
  orders_.repeat_standing(now, out);
  reports_.flush(orders_.current(), feed_, now, out);
}

void ClientCore::on(const BeginPhase& input, MonoTime, Effects&) {
  feed_.begin(input.phase, orders_.current());
}

void ClientCore::on(const SetHold& input, MonoTime, Effects&) { feed_.set_hold(input.records); }

void ClientCore::on(const Commit& input, MonoTime now, Effects&) {
  feed_.commit(input.place, input.partial, now);
}

void ClientCore::on(const GiveBack& input, MonoTime, Effects&) { feed_.give_back(input.records); }

void ClientCore::on(const Skip& input, MonoTime, Effects&) { feed_.skip(input.records); }

void ClientCore::on(const BatchTimes& input, MonoTime now, Effects& out) {
  reports_.add(input);
  reports_.flush_report(orders_.current(), now, out);
}

void ClientCore::on(const wire::TimeAccount& input, MonoTime now, Effects& out) {
  reports_.add(input);
  reports_.flush_report(orders_.current(), now, out);
}

void ClientCore::on(const wire::Progress& input, MonoTime now, Effects& out) {
  reports_.set_step(input.step);
  if (input.done) {
    reports_.drop_progress();
    feed_.place_was_sent(input.phase, input.place);
    return orders_.stand(input, now, out);
  }
  reports_.add(input, orders_.current());
  reports_.flush_progress(feed_, now, out);
}

template <class Message>
void ClientCore::on(const Message& input, MonoTime now, Effects& out) {
  if constexpr (std::is_same_v<Message, wire::Join> || std::is_same_v<Message, wire::Ready>) {
    reports_.set_step(input.step);
  }
  if constexpr (std::is_same_v<Message, wire::Traced>) reports_.set_step(input.steps);
  if constexpr (std::is_same_v<Message, wire::CheckpointBegun> ||
                std::is_same_v<Message, wire::CheckpointWritten> ||
                std::is_same_v<Message, wire::Traced> || std::is_same_v<Message, wire::StackTold>) {
    out.emplace_back(SendMessage{orders_.current(), 0, input});
  } else {
    orders_.stand(input, now, out);
  }
}

void ClientCore::on(const wire::Bye& input, MonoTime now, Effects& out) {
  orders_.drop_standing();
  wire::Bye last = reports_.end(input, orders_.current(), feed_, now, out);
  out.emplace_back(SendMessage{orders_.current(), 0, std::move(last)});
}

}  // namespace antdt::client
