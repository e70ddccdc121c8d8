#include "trainer/ps_server/server_agent.h"

#include <unistd.h>

#include <cmath>
#include <tuple>
#include <utility>

#include "core/log/log.h"
#include "core/overloaded.h"
#include "core/schema/job_reader.h"
#include "core/wire/dispatch.h"

namespace antdt::ps {
namespace {

Result<Duration> hang_after_in(const std::string& config_json) {
  Duration hang_after{};
  schema::JobReader job(config_json);
  job.read("failure.hang_after", hang_after);
  ANTDT_RETURN_IF_ERROR(job.status());
  return hang_after;
}

}  // namespace

Result<std::unique_ptr<ServerAgent>> ServerAgent::start(EventLoop& loop,
                                                        transport::Context& context,
                                                        client::Environment environment) {
  ANTDT_TRY(auto own, transport::make_key_pair(fmt::format("{}", environment.self.worker)));
  ANTDT_TRY(auto agent, transport::Socket::connect_ipc(context, environment.socket));
  return std::unique_ptr<ServerAgent>(
      new ServerAgent(loop, context, std::move(environment), std::move(agent), std::move(own)));
}

ServerAgent::ServerAgent(EventLoop& loop, transport::Context& context,
                         client::Environment environment, transport::Socket agent,
                         transport::KeyPair own)
    : loop_(loop),
      context_(context),
      environment_(std::move(environment)),
      agent_(std::move(agent)),
      own_keys_(std::move(own)),
      process_(environment_.self, environment_.socket, loop.now()) {
  loop_.watch_socket(agent_, [this] { receive(); });
  tick();
  pulse_ = loop_.call_after(ServerProcess::kPulse, [this] { pulse(); });
}

ServerAgent::~ServerAgent() {
  loop_.cancel(again_);
  loop_.cancel(pulse_);
  server_.reset();  // before its socket
  loop_.unwatch_socket(agent_);
}

void ServerAgent::end(Result<int> outcome) {
  if (!outcome_) outcome_ = std::move(outcome);
  loop_.stop();
}

void ServerAgent::perform(process::GiveUpProcess& effect) {
  end(tl::unexpected<Error>(std::move(effect.error)));
}

void ServerAgent::feed(process::Input input) {
  inputs_.push_back(std::move(input));
  if (std::exchange(feeding_, true)) return;
  process::Effects effects;
  while (!inputs_.empty()) {
    const process::Input next = std::move(inputs_.front());
    inputs_.pop_front();
    process_.step(next, loop_.now(), effects);
    for (process::Effect& effect : effects) {
      std::visit([this](auto& e) { perform(e); }, effect);
    }
    effects.clear();
  }
  feeding_ = false;
}

void ServerAgent::tick() {
  again_ = loop_.call_after(ServerProcess::kAgain, [this] { tick(); });
  feed(process::TimePassed{});
}

void ServerAgent::pulse() {
  pulse_ = loop_.call_after(ServerProcess::kPulse, [this] { pulse(); });
  if (!server_) return feed(process::PulsePassed{});
  feed(process::PulsePassed{server_->version(), server_->writing()});
}

// ---------------------------------------------------------------- what is said

template <class M>
void ServerAgent::say(const M& message, Generation generation) {
  wire::Envelope envelope;
  envelope.job = environment_.job;
  envelope.worker = environment_.self.worker;
  envelope.attempt = environment_.self.attempt;
  envelope.generation = generation;
  // A message for which there is no room is repeated, or requested again.
  std::ignore = agent_.send(wire::make_packet(envelope, message));
}

void ServerAgent::perform(const process::SayHello&) {
  say(wire::Hello{wire::kMinVersion, wire::kMaxVersion, "antdt-server"});
}

void ServerAgent::perform(const process::TellOperator& effect) { log_warn("{}", effect.text); }

void ServerAgent::perform(process::SayJoin& effect) {
  effect.join.pid = static_cast<std::uint32_t>(getpid());
  say(effect.join);
}

void ServerAgent::perform(process::SayReport& effect) {
  effect.report.throttle_permille = throttle_permille_;
  say(effect.report, effect.generation);
}

void ServerAgent::perform(const process::SayStats& effect) {
  if (server_) say(server_->stats(), effect.generation);
}

void ServerAgent::perform(const process::AnswerGroupOrder& effect) {
  say(effect.serving, effect.generation);
}

void ServerAgent::perform(const process::RefuseGroupOrder& effect) {
  log_warn("{}", effect.refused.reason);
  say(effect.refused, effect.generation);
}

void ServerAgent::perform(const process::AnswerCutOrder& effect) {
  say(effect.saved, effect.generation);
}

// The loop's thread reads, so no timer of the loop fires; the report is sent from here.
void ServerAgent::report_reading(const std::string& path, std::uint64_t done, std::uint64_t total) {
  const MonoTime now = SteadyClock().now();
  if (done < total && now - reading_said_ < ServerProcess::kPulse / 2) return;
  reading_said_ = now;
  wire::Report report;
  report.activity = "reconfigure";
  report.io = "reading the checkpoint";
  report.io_path = path;
  report.io_done_bytes = done;
  report.io_total_bytes = total;
  say(report, process_.generation());
}

// --------------------------------------------------------------- what is heard

void ServerAgent::receive() {
  while (const auto packet = agent_.receive()) {
    const auto envelope = wire::open_envelope(*packet);
    if (envelope) on_packet(*packet, *envelope);
    if (outcome_) return;
  }
}

void ServerAgent::on_packet(const wire::Packet& packet, const wire::Envelope& envelope) {
  const Overloaded hear{
      [&](const wire::WorkerWelcome& welcome) { hear_welcome(welcome); },
      [&](const wire::Refused& refused) {
        if (refused.code == wire::RefusalCode::kStale) log_info("{}", refused.reason);
        feed(process::RefusalHeard{refused});
      },
      [&](const wire::Leave& leave) { feed(process::LeaveHeard{static_cast<int>(leave.code)}); },
      [&](const wire::PsServe& serve) {
        feed(process::GroupOrderHeard{envelope.generation, serve});
      },
      [&](const wire::Injected& injected) {
        if (injected.number > injection_ordered_.number) injection_ordered_ = injected;
      },
      [&](const wire::PsCut& cut) {
        feed(process::CutOrderHeard{envelope.generation, cut});
      }};
  // Other messages to workers do not concern servers.
  std::ignore = wire::dispatch<wire::WorkerWelcome, wire::Refused, wire::Leave, wire::PsServe,
                               wire::Injected,
                               wire::PsCut>(envelope.kind, packet.body, [&](const auto& message) {
    if (message) return hear(*message);
    say(wire::Refused{wire::RefusalCode::kInvalid, message.error().message}, envelope.generation);
  });
}

// ------------------------------------------------------------------- its end point

void ServerAgent::hear_welcome(const wire::WorkerWelcome& welcome) {
  welcome_ = welcome;
  feed(process::WelcomeHeard{welcome.version});
}

void ServerAgent::perform(const process::OpenEndPoint&) {
  Status ready = prepare_drill();
  if (ready) ready = open_end_point();
  if (!ready) return feed(process::EndPointFailed{std::move(ready).error()});
  feed(process::EndPointOpened{own_->endpoint, own_keys_.public_z85});
}

// The agent is told with the next report.
Status ServerAgent::prepare_drill() {
  const auto throttle = [this](double share) {
    throttle_permille_ = static_cast<std::uint32_t>(std::lround(share * 1000));
  };
  const Member self = environment_.self;
  auto injected = trainer::Injected::of_job(
      clock_, welcome_->config_json, {self.worker, welcome_->host, self.attempt},
      [this] { return injection_ordered_; }, throttle);
  if (!injected) return tl::unexpected<Error>(std::move(injected).error());
  injected_.emplace(std::move(*injected));
  return {};
}

Drill ServerAgent::drill() {
  injected_->training_began();
  return {[this](MonoTime began, std::uint64_t request) {
            injected_->after_compute(began, request, 1);
          },
          [link = injected_->link()](std::size_t bytes) { return link->delay(bytes); }};
}

Status ServerAgent::open_end_point() {
  const wire::WorkerWelcome& welcome = *welcome_;
  ANTDT_TRY(const ListenConfig config, parse_listen_config(welcome.config_json));
  if (config.over_tcp()) {
    ANTDT_RETURN_IF_ERROR(check_run_directory(welcome.run_dir, environment_.job, welcome.host));
    ANTDT_RETURN_IF_ERROR(context_.serve_authentication(
        loop_, [admitted = admitted_](const std::string& key) { return admitted->name_of(key); }));
  }
  ANTDT_TRY(own_, listen(context_, environment_, config, own_keys_));
  return {};
}

// -------------------------------------------------------------------- the group

void ServerAgent::perform(process::BeginGroup& effect) {
  if (const Status begun = begin_group(effect); !begun) feed(process::GroupFailed{begun.error()});
}

// The previous group is over, whether or not this one can begin.
Status ServerAgent::begin_group(const process::BeginGroup& effect) {
  std::optional<Server::Rows> rows;
  if (server_ && effect.keep) rows = server_->release();
  server_.reset();
  Group group = group_of(effect.start);
  group.reads = [this](const std::string& path, std::uint64_t done, std::uint64_t total) {
    report_reading(path, done, total);
  };
  group.name = fmt::format("{} on {}", environment_.self.worker, welcome_->host);
  group.root = welcome_->run_dir;
  ANTDT_TRY(group.hang_after, hang_after_in(welcome_->config_json));
  group.own = own_keys_;
  group.drill = drill();
  ANTDT_TRY(server_, ServerLoop::open(loop_, context_, own_->socket, std::move(group),
                                      effect.start.node.index));
  if (rows) server_->adopt(std::move(*rows));
  server_->set_broken_handler([this](const ps::replica::BreakUp& broken) {
    log_warn("this process cannot be the backup of its server: {}", broken.error);
    feed(process::BackupBroken{broken.error, broken.unread});
  });
  return {};
}

void ServerAgent::perform(const process::OrderGroup& effect) {
  if (!server_) return;
  admitted_->admit(effect.serve);
  server_->serve(effect.serve,
                 [this](const wire::PsServing& serving) { feed(process::OrderTaken{serving}); });
}

void ServerAgent::perform(const process::OrderSlices& effect) {
  if (!server_) return;
  server_->cut(effect.cut, [this](const wire::PsSaved& saved) { feed(process::CutTaken{saved}); });
}

}  // namespace antdt::ps
