#include "trainer/nccl/nccl_collective.h"

#include <mutex>
#include <utility>
#include <vector>

#include "core/log/log.h"
#include "trainer/nccl/agreement.h"
#include "trainer/nccl/faults.h"
#include "trainer/nccl/staged_device.h"

namespace antdt::nccl {

using trainer::Collective;
using trainer::DeviceBytes;
using trainer::DeviceCollective;
using trainer::DeviceSpan;
using trainer::DeviceStream;
using trainer::DeviceType;

namespace {

DataType type_of(DeviceType type) {
  switch (type) {
    case DeviceType::kFloat32:
      return DataType::kFloat32;
    case DeviceType::kFloat64:
      return DataType::kFloat64;
    case DeviceType::kFloat16:
      return DataType::kFloat16;
    case DeviceType::kBfloat16:
      return DataType::kBfloat16;
  }
  return DataType::kUint8;
}

// What an abort of a group must reach, from whatever its members may wait in.
class Abortable {
 public:
  // Replaces what is aborted. If that was wanted before, it is done at once.
  void hold(std::function<void()> abort) {
    const std::lock_guard lock(mutex_);
    abort_ = std::move(abort);
    if (aborted_) abort_();
  }
  void abort() {
    const std::lock_guard lock(mutex_);
    aborted_ = true;
    if (abort_) abort_();
  }

 private:
  std::mutex mutex_;
  bool aborted_ = false;
  std::function<void()> abort_;
};

// Hands everything in host memory to another collective.
class Delegating : public Collective {
 public:
  explicit Delegating(std::shared_ptr<Collective> host) : host_(std::move(host)) {}
  [[nodiscard]] std::uint32_t rank() const override { return host_->rank(); }
  [[nodiscard]] std::uint32_t size() const override { return host_->size(); }
  [[nodiscard]] Status allreduce_sum(std::span<float> values) override {
    return host_->allreduce_sum(values);
  }
  [[nodiscard]] Status allreduce_sum(std::span<double> values) override {
    return host_->allreduce_sum(values);
  }
  [[nodiscard]] Status allgather(std::span<const std::byte> mine,
                                 std::span<std::byte> all) override {
    return host_->allgather(mine, all);
  }
  [[nodiscard]] Status allgather_parts(std::span<const std::size_t> sizes,
                                       std::span<std::byte> all) override {
    return host_->allgather_parts(sizes, all);
  }
  [[nodiscard]] Status send_right(std::span<const std::byte> bytes) override {
    return host_->send_right(bytes);
  }
  [[nodiscard]] Status receive_left(std::span<std::byte> bytes) override {
    return host_->receive_left(bytes);
  }
  [[nodiscard]] Result<std::optional<Duration>> measure_hop() override {
    return host_->measure_hop();
  }
  [[nodiscard]] Status alltoall_parts(std::span<const std::size_t> sent_sizes,
                                      std::span<const std::byte> sent,
                                      std::span<const std::size_t> received_sizes,
                                      std::span<std::byte> received) override {
    return host_->alltoall_parts(sent_sizes, sent, received_sizes, received);
  }
  [[nodiscard]] Result<std::unique_ptr<Collective>> group(
      std::span<const std::uint32_t> ranks) override {
    return host_->group(ranks);
  }
  [[nodiscard]] std::shared_ptr<trainer::LinkLedger> ledger() const override {
    return host_->ledger();
  }
  [[nodiscard]] std::string description() const override { return host_->description(); }

 protected:
  const std::shared_ptr<Collective> host_;
};

class StagedCollective final : public Delegating {
 public:
  StagedCollective(std::shared_ptr<Collective> host, const Backend* backend)
      : Delegating(std::move(host)) {
    if (backend != nullptr) device_.emplace(*host_, backend->cuda, backend->device);
  }
  [[nodiscard]] DeviceCollective* device() override { return device_ ? &*device_ : nullptr; }
  void abort() override {
    host_->abort();
    if (device_) device_->abort();
  }

 private:
  std::optional<StagedDevice> device_;
};

class NcclCollective final : public Delegating, private DeviceCollective {
 public:
  NcclCollective(std::shared_ptr<Collective> host, std::shared_ptr<Backend> backend,
                 std::shared_ptr<Communicator> communicator)
      : Delegating(std::move(host)),
        backend_(std::move(backend)),
        communicator_(std::move(communicator)) {}
  ~NcclCollective() override { static_cast<void>(told(communicator_->close())); }
  NcclCollective(const NcclCollective&) = delete;
  NcclCollective& operator=(const NcclCollective&) = delete;

  // One member alone exchanges nothing.
  [[nodiscard]] std::string description() const override {
    const std::string host = Delegating::description();
    return host.empty() ? host : "nccl, and " + host;
  }
  [[nodiscard]] DeviceCollective* device() override { return this; }
  void abort() override {
    host_->abort();
    communicator_->abort();
  }

 private:
  [[nodiscard]] Status enqueue_sum(DeviceSpan values, DeviceStream stream) override {
    if (values.count == 0) return {};
    return told(communicator_->enqueue(
        {Operation::Kind::kSum, values.data, values.count, type_of(values.type), 0, stream}));
  }
  [[nodiscard]] Status enqueue_send_right(DeviceBytes bytes, DeviceStream stream) override {
    return pass(Operation::Kind::kSend, bytes, (rank() + 1) % size(), stream);
  }
  [[nodiscard]] Status enqueue_receive_left(DeviceBytes bytes, DeviceStream stream) override {
    return pass(Operation::Kind::kReceive, bytes, (rank() + size() - 1) % size(), stream);
  }
  [[nodiscard]] Status finish() override { return told(communicator_->finish()); }

  [[nodiscard]] Status pass(Operation::Kind kind, DeviceBytes bytes, std::uint32_t peer,
                            DeviceStream stream) {
    if (size() == 1) {
      return fail(ErrorKind::kInternal, "a group of one member has no neighbour to pass bytes to");
    }
    if (bytes.size == 0) return {};
    return told(communicator_->enqueue(
        {kind, bytes.data, bytes.size, DataType::kUint8, static_cast<int>(peer), stream}));
  }
  [[nodiscard]] Status told(Status status) {
    if (communicator_->is_stuck()) backend_->is_stuck = true;
    return status;
  }

  const std::shared_ptr<Backend> backend_;
  const std::shared_ptr<Communicator> communicator_;
};

class NcclBuilder final : public trainer::CollectiveBuilder {
 public:
  NcclBuilder(std::shared_ptr<CollectiveBuilder> inner, bool holds_state, NcclOptions options)
      : inner_(std::move(inner)), holds_state_(holds_state), options_(std::move(options)) {
    abortable_.hold([inner = inner_] { inner->abort(); });
  }
  [[nodiscard]] trainer::MemberAddress address() const override { return inner_->address(); }
  void abort() override { abortable_.abort(); }
  [[nodiscard]] Result<std::unique_ptr<Collective>> connect(
      std::span<const trainer::MemberAddress> addresses, const trainer::GroupKey& key) override;

 private:
  [[nodiscard]] MemberSays own_facts() const;
  [[nodiscard]] Result<std::vector<MemberSays>> gather(Collective& host,
                                                       const MemberSays& mine) const;
  [[nodiscard]] Result<Obstacle> obstacle_of(Collective& host) const;
  [[nodiscard]] Result<UniqueId> make_id() const;
  [[nodiscard]] Result<UniqueId> share_id(Collective& host) const;
  [[nodiscard]] Result<std::unique_ptr<Collective>> without_nccl(std::shared_ptr<Collective> host,
                                                                 const Obstacle& obstacle) const;
  [[nodiscard]] Result<std::unique_ptr<Collective>> with_nccl(std::shared_ptr<Collective> host);

  const std::shared_ptr<CollectiveBuilder> inner_;
  const bool holds_state_;
  const NcclOptions options_;
  Abortable abortable_;
};

Result<std::unique_ptr<Collective>> NcclBuilder::connect(
    std::span<const trainer::MemberAddress> addresses, const trainer::GroupKey& key) {
  ANTDT_TRY(auto connected, inner_->connect(addresses, key));
  const std::shared_ptr<Collective> host = std::move(connected);
  abortable_.hold([host] { host->abort(); });
  ANTDT_TRY(const Obstacle obstacle, obstacle_of(*host));
  return obstacle.why.empty() ? with_nccl(host) : without_nccl(host, obstacle);
}

MemberSays NcclBuilder::own_facts() const {
  MemberSays mine{
      .holds_state = holds_state_, .host = options_.place.host, .machine = options_.place.machine};
  if (!options_.backend) {
    mine.trouble = options_.backend.error().message;
    return mine;
  }
  const Backend& backend = **options_.backend;
  mine.device = backend.identity;
  if (backend.library) {
    mine.version = backend.library->version;
  } else {
    mine.trouble = backend.library.error().message;
  }
  return mine;
}

Result<std::vector<MemberSays>> NcclBuilder::gather(Collective& host,
                                                    const MemberSays& mine) const {
  std::vector<std::byte> all(kSaysBytes * host.size());
  ANTDT_RETURN_IF_ERROR(host.allgather(encode(mine), all));
  return decode(all);
}

Result<Obstacle> NcclBuilder::obstacle_of(Collective& host) const {
  ANTDT_TRY(const auto members, gather(host, own_facts()));
  return obstacle(members, options_.encrypt);
}

Result<UniqueId> NcclBuilder::make_id() const {
  const Library& nccl = *(*options_.backend)->library;
  UniqueId id{};
  if (const Code code = nccl.get_unique_id(&id); code != Code::kSuccess) {
    const char* const text = nccl.get_last_error(nullptr);
    return tl::unexpected(fault(code, "making the id of the group", text == nullptr ? "" : text));
  }
  ANTDT_RETURN_IF_ERROR(check_meeting_place(accelerator::own_environment()));
  return id;
}

// Rank 0 makes the id, once all agreed: from then on its NCCL listens for the others. Only members
// learn the id, because only they are connected. If rank 0 cannot, the error is its own, and the
// others may form a group without it.
Result<UniqueId> NcclBuilder::share_id(Collective& host) const {
  Result<UniqueId> made;
  MemberSays mine{.host = options_.place.host};
  if (host.rank() == 0) {
    made = make_id();
    if (made) {
      mine.id = *made;
    } else {
      mine.trouble = made.error().message;
    }
  }
  ANTDT_TRY(const auto members, gather(host, mine));
  if (!made) return made;
  if (members[0].trouble.empty()) return members[0].id;
  return fail(ErrorKind::kIo, "{}: {}", members[0].host, members[0].trouble);
}

// Who is at fault ends with that. The others join again with it, and form a group without.
Result<std::unique_ptr<Collective>> NcclBuilder::without_nccl(std::shared_ptr<Collective> host,
                                                              const Obstacle& obstacle) const {
  const std::string& why = obstacle.why;
  if (options_.required) {
    return fail(obstacle.at_fault[host->rank()] ? ErrorKind::kUsage : ErrorKind::kIo,
                "the group cannot use NCCL, which trainer.collective = \"nccl\" demands: {}", why);
  }
  if (options_.on_fallback) {
    options_.on_fallback(why);
  } else {
    log_warn("tensors of devices are summed through host memory: {}", why);
  }
  const Backend* const backend = options_.backend ? options_.backend->get() : nullptr;
  return std::make_unique<StagedCollective>(std::move(host), backend);
}

Result<std::unique_ptr<Collective>> NcclBuilder::with_nccl(std::shared_ptr<Collective> host) {
  const std::shared_ptr<Backend>& backend = *options_.backend;
  ANTDT_TRY(const UniqueId id, share_id(*host));
  const auto communicator = std::make_shared<Communicator>(
      Communicator::Parts{*backend->library, backend->cuda, backend->device}, options_.patience);
  abortable_.hold([host, communicator] {
    host->abort();
    communicator->abort();
  });
  if (auto formed = communicator->form(id, host->rank(), host->size()); !formed) {
    if (communicator->is_stuck()) backend->is_stuck = true;
    return tl::unexpected(formed.error());
  }
  return std::make_unique<NcclCollective>(std::move(host), backend, communicator);
}

}  // namespace

Result<std::unique_ptr<trainer::CollectiveBuilder>> prepare_nccl(
    const trainer::Seat& seat, const trainer::CollectiveFactory& inner, NcclOptions options) {
  if (options.backend && (*options.backend)->is_stuck) {
    return fail(ErrorKind::kInternal,
                "an earlier communicator of NCCL could not be ended in this process, which has to "
                "be started again before it can be a member of a group");
  }
  ANTDT_TRY(auto builder, inner(seat));
  return std::make_unique<NcclBuilder>(std::move(builder), seat.holds_state, std::move(options));
}

}  // namespace antdt::nccl
