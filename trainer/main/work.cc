#include "trainer/main/work.h"

#include <memory>
#include <tuple>

#include "core/os/fs.h"
#include "core/transport/socket.h"
#include "trainer/collective/prepare.h"
#include "trainer/data/dataset.h"
#include "trainer/emulated/pace.h"
#include "trainer/loop/collective_options.h"
#include "trainer/loop/member_driver.h"
#include "trainer/loop/own_device.h"
#include "trainer/loop/ps_driver.h"
#include "trainer/loop/served/linked_rows.h"
#include "trainer/loop/trainer_config.h"
#include "trainer/main/parts.h"
#include "trainer/nccl/nccl_collective.h"

namespace antdt::trainer {
namespace {

// What both kinds of member need.
struct Worker {
  client::Client& client;
  TimeAccount& account;
  const Clock& clock;
  const std::atomic<bool>& stop;
  Parts& makes;
  const TrainerConfig& config;
  Split train = {};
  Split eval = {};
  [[nodiscard]] wire::DataIdentity identity() const {
    return data::identity_of(train.summary, eval.summary);
  }
  [[nodiscard]] data::Prefetcher::Take take() const {
    return [this](std::uint64_t max_records, Duration timeout) {
      return client.take(max_records, timeout);
    };
  }
};

Result<Pace> pace_of(const Worker& worker) {
  return Pace::of(worker.config.emulation, worker.client.member().worker, worker.config.seed,
                  worker.clock, sleeping());
}

Result<Injected> injected_into(const Worker& worker) {
  const Member self = worker.client.member();
  return Injected::of_job(
      worker.clock, worker.client.config_json(), {self.worker, worker.client.host(), self.attempt},
      [&client = worker.client] { return client.injected(); },
      [&client = worker.client](double share) { client.set_throttle(share); });
}

// If /proc cannot be read, the worker has no device class.
wire::Device reported(const Worker& worker, const ComputeDevice& device = {}) {
  if (device.cuda) return {device.name, 0};
  return own_device(worker.config, worker.client.member().worker,
                    read_file("/proc/cpuinfo").value_or(""));
}

// As trainer.collective says.
Result<CollectiveFactory> collectives(const Worker& worker, const ComputeDevice& device,
                                      const CollectiveOptions& options) {
  const CollectiveFactory host = [options](const Seat& seat) {
    return prepare_collective(seat.rank, seat.size, options);
  };
  if (worker.config.collective != "nccl") return host;
  if (!device.cuda) {
    return fail(ErrorKind::kUsage,
                "trainer.collective = \"nccl\" sums in the memory of CUDA devices, and this worker "
                "computes on a processor: use \"auto\", or workers with devices "
                "(roles.worker.resources) and an AntDT that was built for CUDA");
  }
  const auto backend = nccl::load_backend({.device = static_cast<int>(*device.cuda)});
  const auto patience = nccl::communicator::patience_in(worker.config.hang_after);
  return [host, backend, patience, encrypt = worker.config.encrypt](const Seat& seat) {
    return nccl::prepare_nccl(
        seat, host,
        {.backend = backend, .required = true, .encrypt = encrypt, .patience = patience});
  };
}

Result<int> work_in_a_collective(const Worker& worker) {
  ANTDT_TRY(const auto device, worker.makes.device(worker.client.member().worker));
  ANTDT_TRY(auto engine,
            worker.makes.engine(
                worker.train.reader->shape(), [&] { return pace_of(worker); }, device));
  ANTDT_RETURN_IF_ERROR(worker.makes.options_read());
  data::Prefetcher prefetcher(worker.take());
  ANTDT_TRY(Injected injected, injected_into(worker));
  ANTDT_TRY(const auto options,
            collective_options(
                worker.config, injected.link(),
                worker.config.domains.of(worker.client.member().worker, worker.client.host())));
  ANTDT_TRY(auto make_collective, collectives(worker, device, options));
  transport::Context context;  // outlives the links to servers, which the guard may hold
  GenerationGuard guard;
  MemberDriver::Parts parts{worker.train.reader.get(), worker.eval.reader.get(), worker.identity(),
                            std::move(make_collective)};
  parts.device = reported(worker, device);
  parts.io_patience = worker.config.hang_after;
  if (worker.config.sync == SyncStrategy::kDsSync) {
    parts.exchange = worker::DsSync{worker.config.seed};
  }
  if (worker.config.sync == SyncStrategy::kGaia) {
    parts.exchange = worker::Gaia{worker.config.gaia_whole_every, worker.config.gaia_visit_every,
                                  worker.config.gaia_threshold};
  }
  Split shared;
  if (worker.config.share_steps) {
    ANTDT_TRY(shared, worker.makes.open(data::Split::kTrain));
    parts.shared = shared.reader.get();
    parts.sharing.emplace();
    parts.sharing->rules.multiple_of = worker.config.multiple_of;
    parts.sharing->ports = options.ports;
    parts.sharing->connect_timeout = options.connect_timeout;
    // Its messages stay within a group of neighbours, so only rules for all messages hold for them.
    parts.sharing->send_delay = [link = injected.link()](std::size_t bytes) {
      return link->delay(bytes);
    };
  }
  std::optional<LinkedRows> rows;
  if (engine->hosted_rows() != nullptr) {
    LinkedRows::Parts of_rows{worker.client.member(), worker.config.seed};
    ANTDT_TRY(of_rows.keys, transport::make_key_pair(to_string(worker.client.member().worker)));
    of_rows.send_delay = [link = injected.link()](std::size_t bytes) { return link->delay(bytes); };
    parts.key = of_rows.keys.public_z85;
    rows.emplace(context, std::move(of_rows));
    parts.rows = &*rows;
  }
  MemberDriver member({worker.clock, worker.client, *engine, prefetcher, worker.account, injected,
                       guard, worker.stop},
                      std::move(parts));
  auto code = member.run();
  // On a device that has failed even giving memory back throws, in destructors, which would end
  // the process before anybody is told the reason. Its memory goes with the process.
  if (!code) std::ignore = engine.release();
  return code;
}

Result<int> work_with_servers(const Worker& worker) {
  ANTDT_TRY(const auto model,
            worker.makes.served(worker.train.reader->shape(), [&] { return pace_of(worker); }));
  ANTDT_RETURN_IF_ERROR(worker.makes.options_read());
  transport::Context context;
  PsDriver::Parts parts{worker.train.reader.get(), worker.eval.reader.get(), worker.identity(),
                        worker.config.seed};
  ANTDT_TRY(parts.keys, transport::make_key_pair(to_string(worker.client.member().worker)));
  parts.device = reported(worker);
  if (is_shadow(worker.config.sync)) {
    if (model->replica() == nullptr) {
      return fail(ErrorKind::kUsage,
                  "trainer.model '{}' has no dense parameters that a worker could keep, so "
                  "trainer.sync = \"{}\" is not for it: use \"ps-asp\"",
                  worker.config.model, name_of(worker.config.sync));
    }
    parts.shadow = ps_worker::ShadowRules{worker.config.shadow_every};
  }
  data::Prefetcher prefetcher(worker.take());
  ANTDT_TRY(Injected injected, injected_into(worker));
  GenerationGuard guard;
  PsDriver member({worker.clock, worker.client, *model, context, prefetcher, worker.account,
                   injected, guard, worker.stop},
                  parts);
  return member.run();
}

}  // namespace

Result<int> work(client::Client& client, TimeAccount& account, const Clock& clock,
                 const std::atomic<bool>& stop, const WorkerProgram& program) {
  ANTDT_TRY(const auto parts, program.parts(client.config_json()));
  parts->in_domain(parts->config().domains.of(client.member().worker, client.host()));
  parts->tell_of_data([&client](client::Io io) { client.set_io(std::move(io)); });
  Worker worker{client, account, clock, stop, *parts, parts->config()};
  ANTDT_TRY(worker.train, parts->open(data::Split::kTrain));
  ANTDT_TRY(worker.eval, parts->open(data::Split::kEval));
  if (!worker.train.reader) return fail(ErrorKind::kUsage, "the training data has no records");
  const bool is_member = in_collective(worker.config.sync);
  return is_member ? work_in_a_collective(worker) : work_with_servers(worker);
}

}  // namespace antdt::trainer
