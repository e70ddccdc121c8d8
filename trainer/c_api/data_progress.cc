#include "trainer/c_api/data_progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <mutex>
#include <tuple>
#include <utility>
#include <vector>

#include "core/os/fs.h"
#include "core/role_protocol.h"
#include "core/wire/packet.h"
#include "core/wire/worker_messages.h"

namespace antdt::capi {
namespace {

struct OpenClients {
  std::mutex mutex;
  std::vector<const OpenClient*> all;
  bool any = false;  // at some time
};
OpenClients& open_clients() {
  static auto* const clients = new OpenClients;  // a job may be closed when the process ends
  return *clients;
}

bool was_started_by_a_shim() {
  if (::getsid(0) != ::getpid()) return false;
  return read_file(fmt::format("/proc/{}/comm", ::getppid())).value_or("") == "antdt-shim\n";
}

TellPace& pace_of_this_process() {
  static const SteadyClock clock;
  static auto* const pace = new TellPace(clock);
  return *pace;
}

std::optional<client::Environment> worker_of_this_process() {
  if (OpenClient::all_closed() || !was_started_by_a_shim()) return {};
  auto found = client::Environment::from_process();
  if (!found || !speaks(found->protocol, Protocol::kAntdt)) return {};
  return std::move(*found);
}

}  // namespace

OpenClient::OpenClient(client::Client* client) : client_(client) {
  const std::lock_guard lock(open_clients().mutex);
  open_clients().all.push_back(this);
  open_clients().any = true;
}

OpenClient::~OpenClient() {
  const std::lock_guard lock(open_clients().mutex);
  std::erase(open_clients().all, this);
}

void OpenClient::joins() {
  const std::lock_guard lock(open_clients().mutex);
  if (client_ != nullptr) client_->set_io({});
  client_ = nullptr;
}

bool OpenClient::tell(const client::Io& io) {
  const std::lock_guard lock(open_clients().mutex);
  for (const OpenClient* open : open_clients().all) {
    if (open->client_ != nullptr) open->client_->set_io(io);
  }
  return !open_clients().all.empty();
}

bool OpenClient::all_closed() {
  const std::lock_guard lock(open_clients().mutex);
  return open_clients().any && open_clients().all.empty();
}

bool TellPace::is_due() {
  const std::lock_guard lock(mutex_);
  const MonoTime now = clock_.now();
  if (now < due_) return false;
  due_ = now + kTellEvery;
  return true;
}

DataProgress DataProgress::of_this_process() {
  return {worker_of_this_process(), pace_of_this_process()};
}

DataProgress::~DataProgress() {
  if (told_) send({});
}

void DataProgress::tell(const client::Io& io) {
  if (!self_) return;
  drop_what_came();
  if (!pace_.is_due()) return;
  told_ = true;
  send(io);
}

// Data are opened, told of or not: no error ends that.
void DataProgress::send(const client::Io& io) {
  if (OpenClient::tell(io) || OpenClient::all_closed()) return;
  if (!agent_) {
    auto link = transport::IpcDealer::connect(self_->socket);
    if (!link) return;
    agent_ = std::move(*link);
  }
  wire::Report report;
  report.activity = "startup";
  report.io = io.what;
  report.io_path = io.path;
  report.io_done_bytes = io.done_bytes;
  report.io_total_bytes = io.total_bytes;
  const wire::Envelope envelope{{}, self_->job, self_->self.worker, self_->self.attempt, {}, 0};
  std::ignore = agent_->send(wire::make_packet(envelope, report));
}

// A link sends, and connects, only while somebody receives.
void DataProgress::drop_what_came() {
  while (agent_ && agent_->receive()) {
  }
}

ProgramProgress& ProgramProgress::of_this_process() {
  // Programs may tell until they end.
  static auto* const progress =
      new ProgramProgress(worker_of_this_process(), pace_of_this_process());
  return *progress;
}

void ProgramProgress::tell(const client::Io& io) {
  if (!self_ || !owner_.here()) return;
  const std::lock_guard lock(mutex_);
  if (!progress_) progress_ = std::make_unique<DataProgress>(self_, pace_);
  progress_->tell(io);
}

void ProgramProgress::ends() {
  if (!self_ || !owner_.here()) return;
  const std::lock_guard lock(mutex_);
  progress_.reset();
}

}  // namespace antdt::capi
