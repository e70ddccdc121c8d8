#include "trainer/c_api/member.h"

#include <utility>

#include "core/os/fs.h"
#include "trainer/collective/prepare.h"
#include "trainer/loop/collective_options.h"
#include "trainer/loop/own_device.h"

namespace antdt::capi {
namespace {

int exit_code_of(const Error& error) {
  switch (error.kind) {
    case ErrorKind::kUsage:
    case ErrorKind::kCorrupt:
      return 2;
    case ErrorKind::kAborted:
      return 76;  // it cannot take part in the training as it goes on
    default:
      return 1;
  }
}

Result<trainer::Injected> injected_into(const SteadyClock& clock, client::Client& client,
                                        bool in_job) {
  if (!in_job) return trainer::Injected(clock, drill::Injection{});
  const antdt::Member self = client.member();
  return trainer::Injected::of_job(
      clock, client.config_json(), {self.worker, client.host(), self.attempt},
      [&client] { return client.injected(); },
      [&client](double share) { client.set_throttle(share); });
}

}  // namespace

Result<std::unique_ptr<Member>> Member::open(const Settings& settings) {
  const SignalsBlocked no_signals;
  ANTDT_TRY(Connection connection, connect(settings, true));
  const trainer::TrainerConfig& config = connection.config;
  ANTDT_TRY(trainer::Injected injected,
            injected_into(*connection.clock, *connection.client, connection.in_job));
  if (config.collective == "nccl") {
    return fail(
        ErrorKind::kUsage,
        "trainer.collective = \"nccl\" is for programs in C++ that compute on CUDA devices: "
        "libantdt sums what is in the host's memory; use \"auto\"");
  }
  std::string domain;
  if (connection.in_job) {
    domain = config.domains.of(connection.client->member().worker, connection.client->host());
  }
  ANTDT_TRY(auto ring, trainer::collective_options(config, injected.link(), std::move(domain)));
  const auto make = [ring](const trainer::Seat& seat) {
    return trainer::prepare_collective(seat.rank, seat.size, ring);
  };
  return std::unique_ptr<Member>(
      new Member(settings, std::move(connection), std::move(injected), make));
}

Member::Member(const Settings& settings, Connection connection, trainer::Injected injected,
               trainer::CollectiveFactory make_collective)
    : in_job_(connection.in_job),
      client_(std::move(connection.client)),
      open_(client_.get()),
      config_(std::move(connection.config)),
      data_(std::move(connection.data)),
      clock_(std::move(connection.clock)),
      account_(*clock_, trainer::process_start(clock_->now())),
      skipped_(client_->run_dir(), to_string(client_->member().worker)),
      injected_(std::move(injected)),
      prefetcher_([this](std::uint64_t max_records, Duration timeout) {
        return client_->take(max_records, timeout);
      }),
      engine_({exchange_, reductions_, upcoming_, state_, evaluations_,
               [this] {
                 const worker::MemberMachine& machine = driver_->machine();
                 return ProgramEngine::Standing{machine.training().step, machine.generation()};
               },
               [this] { return guard_.over(); }, (settings.flags & ANTDT_STATE_ON_REQUEST) != 0}) {
  if (settings.read_ahead > 0) prefetcher_.set_read_ahead(settings.read_ahead);
  driver_ = std::make_unique<trainer::MemberDriver>(
      trainer::Tools{*clock_, *client_, engine_, prefetcher_, account_, injected_, guard_, stop_,
                     &end_of_training_},
      parts(settings, std::move(make_collective)));
}

trainer::MemberDriver::Parts Member::parts(const Settings& settings,
                                           trainer::CollectiveFactory make_collective) {
  trainer::MemberDriver::Parts parts{&numbers_, &numbers_, data_, std::move(make_collective)};
  parts.device = settings.device.name.empty()
                     ? trainer::own_device(config_, client_->member().worker,
                                           read_file("/proc/cpuinfo").value_or(""))
                     : settings.device;
  parts.io_patience = config_.hang_after;
  // How a program makes its first state is not known: its generators may be seeded with the time.
  parts.begins_alike = false;
  return parts;
}

// What it is blocked in ends: an order, a collective, or the next look at whether it is to leave.
Member::~Member() {
  stop_ = true;
  exchange_.close();
  guard_.end();
  if (thread_.joinable()) thread_.join();
}

void Member::start() {
  const std::lock_guard lock(starting_);
  if (started_.exchange(true)) return;
  open_.joins();
  const SignalsBlocked no_signals;
  thread_ = std::thread([this] { live(); });
}

void Member::live() {
  const Result<int> code = run();
  // The phase "finish", in which the program gets no order, tells of the last evaluation.
  if (in_job_) evaluations_.hear(driver_->machine().phase().evaluated);
  Order leave;
  leave.fields.kind = ANTDT_ORDER_LEAVE;
  leave.fields.code = code ? *code : exit_code_of(code.error());
  if (!code) leave.text = code.error().message;
  if (!code) client_->bye({0, account_.seconds(), code.error().message});
  exchange_.end(std::move(leave));
}

Result<int> Member::run() {
  try {
    return driver_->run();
  } catch (const ProgramGone& gone) {
    // The others are not to wait for this member, and nothing is summed any more when the
    // collective goes.
    guard_.end();
    std::ignore = reductions_.finish();
    return tl::unexpected(gone.error);
  }
}

}  // namespace antdt::capi
