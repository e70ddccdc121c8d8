#include "cmd/antdt-trainer/work.h"

#include <cstdlib>
#include <memory>
#include <optional>

#include "core/os/fs.h"
#include "core/transport/socket.h"
#include "trainer/collective/listen_address.h"
#include "trainer/collective/tcp_collective.h"
#include "trainer/data/dataset.h"
#include "trainer/emulated/emulated_engine.h"
#include "trainer/emulated/emulated_ps_model.h"
#include "trainer/loop/member_driver.h"
#include "trainer/loop/own_device.h"
#include "trainer/loop/ps_driver.h"
#include "trainer/loop/trainer_config.h"
#include "trainer/tally/ps_tally.h"
#include "trainer/tally/tally_engine.h"
#include "trainer/torch/ps_model.h"
#include "trainer/torch/torch_engine.h"

namespace antdt {
namespace {

// The data of one split; no reader where the split has no records.
struct Split {
  data::DataSummary summary;
  std::unique_ptr<data::RecordReader> reader;
};

Result<Split> open_split(const std::string& config, data::Split which) {
  Split split;
  ANTDT_TRY(split.summary, data::build_index(config, which));
  if (split.summary.records == 0) return split;
  ANTDT_TRY(split.reader, data::open_reader(config, which));
  return split;
}

// A record to die at, see trainer/tally/README.md.
std::optional<std::uint64_t> poison() {
  const char* record = std::getenv("TALLY_POISON");
  if (record == nullptr) return {};
  return std::strtoull(record, nullptr, 10);
}

// What both kinds of member need.
struct Worker {
  client::Client& client;
  trainer::TimeAccount& account;
  const Clock& clock;
  const std::atomic<bool>& stop;
  trainer::TrainerConfig config;
  Split train;
  Split eval;
  [[nodiscard]] wire::DataIdentity identity() const {
    return data::identity_of(train.summary, eval.summary);
  }
  [[nodiscard]] data::Prefetcher::Take take() const {
    return [this](std::uint64_t max_records, Duration timeout) {
      return client.take(max_records, timeout);
    };
  }
};

Result<trainer::Pace> pace_of(const Worker& worker) {
  return trainer::Pace::of(worker.config.emulation, worker.client.member().worker,
                           worker.config.seed, worker.clock, trainer::sleeping());
}

Result<std::unique_ptr<trainer::Engine>> make_engine(const Worker& worker) {
  const trainer::TrainerConfig& config = worker.config;
  const data::DataShape& shape = worker.train.reader->shape();
  if (config.model == "tally") return trainer::make_tally_engine(shape, poison());
  if (config.model == "emulated") {
    ANTDT_TRY(auto pace, pace_of(worker));
    return trainer::make_emulated_engine(shape, config.emulation.parameters, std::move(pace));
  }
  trainer::set_compute_threads(config.threads);
  return trainer::make_torch_engine(config, shape);
}

Result<std::unique_ptr<trainer::PsModel>> make_ps_model(const Worker& worker) {
  const trainer::TrainerConfig& config = worker.config;
  const data::DataShape& shape = worker.train.reader->shape();
  if (config.model == "tally") return trainer::make_tally_ps_model(shape, 1, poison());
  if (config.model == "tally3") return trainer::make_tally_ps_model(shape, 3, poison());
  if (config.model == "emulated") {
    ANTDT_TRY(auto pace, pace_of(worker));
    return trainer::make_emulated_ps_model(shape, config.emulation.parameters, std::move(pace));
  }
  trainer::set_compute_threads(config.threads);
  return trainer::make_torch_ps_model(config, shape);
}

Result<trainer::Injected> injected_into(const Worker& worker) {
  const Member self = worker.client.member();
  return trainer::Injected::of_job(
      worker.clock, worker.client.config_json(), {self.worker, worker.client.host(), self.attempt},
      [&client = worker.client] { return client.injected(); },
      [&client = worker.client](double share) { client.set_throttle(share); });
}

// Where /proc cannot be read it is of no class.
wire::Device device_of(const Worker& worker) {
  return trainer::own_device(worker.config, worker.client.member().worker,
                             read_file("/proc/cpuinfo").value_or(""));
}

Result<int> work_in_a_collective(const Worker& worker) {
  ANTDT_TRY(const auto engine, make_engine(worker));
  ANTDT_TRY(auto ring, trainer::listen_options(worker.config.hosts, worker.config.interface,
                                               worker.config.ports));
  ring.encrypt = worker.config.encrypt;
  data::Prefetcher prefetcher(worker.take());
  ANTDT_TRY(trainer::Injected injected, injected_into(worker));
  ring.send_delay = [link = injected.link()](std::size_t bytes) { return link->delay(bytes); };
  trainer::GenerationGuard guard;
  trainer::MemberDriver::Parts parts{worker.train.reader.get(), worker.eval.reader.get(),
                                     worker.identity(),
                                     [ring](std::uint32_t rank, std::uint32_t size) {
                                       return trainer::prepare_collective(rank, size, ring);
                                     }};
  parts.device = device_of(worker);
  parts.io_patience = worker.config.hang_after;
  trainer::MemberDriver member({worker.clock, worker.client, *engine, prefetcher, worker.account,
                                injected, guard, worker.stop},
                               std::move(parts));
  return member.run();
}

Result<int> work_with_servers(const Worker& worker) {
  ANTDT_TRY(const auto model, make_ps_model(worker));
  transport::Context context;
  trainer::PsDriver::Parts parts{worker.train.reader.get(), worker.eval.reader.get(),
                                 worker.identity(), worker.config.seed};
  ANTDT_TRY(parts.keys, transport::make_key_pair(to_string(worker.client.member().worker)));
  parts.device = device_of(worker);
  data::Prefetcher prefetcher(worker.take());
  ANTDT_TRY(trainer::Injected injected, injected_into(worker));
  trainer::GenerationGuard guard;
  trainer::PsDriver member({worker.clock, worker.client, *model, context, prefetcher,
                            worker.account, injected, guard, worker.stop},
                           parts);
  return member.run();
}

}  // namespace

Result<int> work(client::Client& client, trainer::TimeAccount& account, const Clock& clock,
                 const std::atomic<bool>& stop) {
  Worker worker{client, account, clock, stop, {}, {}, {}};
  const std::string& config = client.config_json();
  ANTDT_TRY(worker.config, trainer::parse_trainer_config(config));
  ANTDT_TRY(worker.train, open_split(config, data::Split::kTrain));
  ANTDT_TRY(worker.eval, open_split(config, data::Split::kEval));
  if (!worker.train.reader) return fail(ErrorKind::kUsage, "the training data has no records");
  const bool has_servers = on_servers(worker.config.sync);
  return has_servers ? work_with_servers(worker) : work_in_a_collective(worker);
}

}  // namespace antdt
