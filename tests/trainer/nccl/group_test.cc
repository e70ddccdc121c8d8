// Groups that use NCCL: what they compute, and how they are formed.
#include "tests/trainer/nccl/testing.h"
#include "trainer/nccl/half.h"

namespace antdt::nccl {
namespace {

std::vector<MemberSetup> members(std::size_t size, const MemberSetup& setup = {}) {
  return std::vector<MemberSetup>(size, setup);
}

// The same sum over the device and over tcp.
template <class T>
std::string compare_with_tcp(Member& member, Collective& group, std::size_t count,
                             DeviceType type) {
  OnDevice device(*(*member.backend)->cuda, count * sizeof(T));
  std::vector<T> values = numbers_of<T>(member.rank, count);
  device.put(values.data(), count * sizeof(T));
  if (auto summed = group.device()->enqueue_sum({device.data(), count, type}, device.stream());
      !summed) {
    return summed.error().message;
  }
  if (auto finished = group.device()->finish(); !finished) return finished.error().message;
  std::vector<T> got(count);
  device.get(got.data(), count * sizeof(T));
  if (auto summed = group.allreduce_sum(std::span<T>(values)); !summed) {
    return summed.error().message;
  }
  return got == values ? "" : "the device's sums differ from tcp's";
}

// Sums of 16-bit numbers, which tcp does not have.
std::string sum_halves(Member& member, Collective& group, DeviceType type) {
  const bool is_bfloat = type == DeviceType::kBfloat16;
  constexpr std::size_t kCount = 40'000;  // more than one piece
  std::vector<std::uint16_t> values(kCount), want(kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    float sum = 0;
    for (std::uint32_t rank = 0; rank < member.size; ++rank) {
      sum += static_cast<float>(i % 50 + rank * 3);
    }
    const auto mine = static_cast<float>(i % 50 + member.rank * 3);
    values[i] = is_bfloat ? to_bfloat16(mine) : to_float16(mine);
    want[i] = is_bfloat ? to_bfloat16(sum) : to_float16(sum);
  }
  OnDevice device(*(*member.backend)->cuda, kCount * 2);
  device.put(values.data(), kCount * 2);
  if (auto summed = group.device()->enqueue_sum({device.data(), kCount, type}, device.stream());
      !summed) {
    return summed.error().message;
  }
  if (auto finished = group.device()->finish(); !finished) return finished.error().message;
  device.get(values.data(), kCount * 2);
  return values == want ? "" : "sums of 16-bit numbers are wrong";
}

std::string all_sums(Member& member, Collective& group) {
  for (const std::size_t count : {1, 1023, 65'537}) {
    std::string trouble = compare_with_tcp<float>(member, group, count, DeviceType::kFloat32);
    if (trouble.empty()) {
      trouble = compare_with_tcp<double>(member, group, count, DeviceType::kFloat64);
    }
    if (!trouble.empty()) return fmt::format("{} elements: {}", count, trouble);
  }
  std::string trouble = sum_halves(member, group, DeviceType::kBfloat16);
  return trouble.empty() ? sum_halves(member, group, DeviceType::kFloat16) : trouble;
}

TEST(NcclGroup, SumsOfDeviceMemoryAreThoseOfTcp) {
  for (std::size_t size = 2; size <= 4; ++size) {
    Group group(members(size), [](Member& member) -> std::string {
      auto formed = member.form();
      if (!formed) return formed.error().message;
      return all_sums(member, **formed);
    });
    group.expect_all_well();
  }
}

TEST(NcclGroup, AGroupOfOneMemberSumsToo) {
  Group group(members(1), [](Member& member) -> std::string {
    auto formed = member.form();
    if (!formed) return formed.error().message;
    return all_sums(member, **formed);
  });
  group.expect_all_well();
}

// Several operations are in the stream before the first is waited for.
TEST(NcclGroup, OperationsAreEnqueuedBeforeEarlierOnesAreDone) {
  Group group(members(3), [](Member& member) -> std::string {
    auto formed = member.form();
    if (!formed) return formed.error().message;
    trainer::DeviceCollective& device = *(*formed)->device();
    OnDevice memory(*(*member.backend)->cuda, 100 * sizeof(double));
    std::vector<double> values(100, 1.0);
    memory.put(values.data(), 100 * sizeof(double));
    for (int i = 0; i < 20; ++i) {
      const Status summed =
          device.enqueue_sum({memory.data(), 100, DeviceType::kFloat64}, memory.stream());
      if (!summed) return summed.error().message;
    }
    if (const Status done = device.finish(); !done) return done.error().message;
    memory.get(values.data(), 100 * sizeof(double));
    return values == std::vector<double>(100, std::pow(3.0, 20)) ? "" : "a sum is wrong";
  });
  group.expect_all_well();
}

TEST(NcclGroup, HostMemoryGoesThroughTheInnerCollective) {
  Group group(members(3), [](Member& member) -> std::string {
    auto formed = member.form();
    if (!formed) return formed.error().message;
    Collective& collective = **formed;
    const std::vector<std::byte> mine(10, static_cast<std::byte>(member.rank));
    std::vector<std::byte> all(30);
    if (auto gathered = collective.allgather(mine, all); !gathered) {
      return gathered.error().message;
    }
    for (std::size_t i = 0; i < 30; ++i) {
      if (all[i] != static_cast<std::byte>(i / 10)) return "gathered wrongly";
    }
    const auto hop = collective.measure_hop();
    if (!hop) return hop.error().message;
    return *hop ? "" : "the hop of a ring of three was not measured";
  });
  group.expect_all_well();
}

TEST(NcclGroup, SaysWhatCarriesItsBytes) {
  for (const auto& [size, words] : {std::pair{2, "nccl, and tcp (2 members)"}, std::pair{1, ""}}) {
    Group group(members(size), [words = std::string(words)](Member& member) -> std::string {
      auto formed = member.form();
      if (!formed) return formed.error().message;
      const std::string said = (*formed)->description();
      return said == words ? "" : "it says " + said;
    });
    group.expect_all_well();
  }
}

// A chain: rank 0 sends, rank 1 passes on piece by piece, rank 2 receives.
TEST(NcclGroup, StateInDeviceMemoryIsPassedAlongTheRing) {
  constexpr std::size_t kBytes = 1'000'003;
  Group group(members(3), [](Member& member) -> std::string {
    auto formed = member.form();
    if (!formed) return formed.error().message;
    trainer::DeviceCollective& device = *(*formed)->device();
    std::vector<unsigned char> want(kBytes), got(kBytes);
    for (std::size_t i = 0; i < kBytes; ++i) want[i] = static_cast<unsigned char>(i * 7 % 251);
    OnDevice memory(*(*member.backend)->cuda, kBytes);
    if (member.rank == 0) memory.put(want.data(), kBytes);
    for (std::size_t at = 0; at < kBytes; at += 100'000) {
      const DeviceBytes piece{static_cast<std::byte*>(memory.data()) + at,
                              std::min<std::size_t>(100'000, kBytes - at)};
      Status status;
      if (member.rank > 0) status = device.enqueue_receive_left(piece, memory.stream());
      if (status && member.rank < 2) status = device.enqueue_send_right(piece, memory.stream());
      if (!status) return status.error().message;
    }
    if (const Status done = device.finish(); !done) return done.error().message;
    memory.get(got.data(), kBytes);
    return got == want ? "" : "other bytes arrived than were sent";
  });
  group.expect_all_well();
}

// Forming takes 300 ms, each operation is put into its stream only after 20 ms.
TEST(NcclGroup, CallsThatAreInProgressAreWaitedFor) {
  Group group(members(2, {"device=own init_ms=300 enqueue_ms=20"}),
              [](Member& member) -> std::string {
                const auto began = std::chrono::steady_clock::now();
                auto formed = member.form();
                if (!formed) return formed.error().message;
                if (std::chrono::steady_clock::now() - began < std::chrono::milliseconds(300)) {
                  return "the group was formed before NCCL had formed it";
                }
                return all_sums(member, **formed);
              });
  group.expect_all_well();
}

// The library ends the process if a second thread enters a communicator.
TEST(NcclGroup, NoTwoThreadsAreEverInOneCommunicator) {
  Group group(members(2, {"device=own call_us=3000"}), [](Member& member) -> std::string {
    auto formed = member.form();
    if (!formed) return formed.error().message;
    const std::shared_ptr<Collective> collective = std::move(*formed);
    std::atomic<bool> ends = false;
    // As the thread of messages would at the end of a generation, again and again.
    std::thread other([&] {
      await([&] { return ends.load(); });
      // In the middle of a call: each takes 3 ms.
      const auto at = std::chrono::steady_clock::now() + std::chrono::microseconds(4500);
      await([&] { return std::chrono::steady_clock::now() > at; });
      for (int i = 0; i < 100; ++i) collective->abort();
    });
    Status status;
    for (int i = 0; status && i < 1000; ++i) {
      if (i == 5) ends = true;
      status = sum_once(member, *collective, 10);
    }
    other.join();
    if (status) return "an aborted group goes on";
    // The other member may have aborted first.
    return status.error().kind == ErrorKind::kAborted ? "" : status.error().message;
  });
  group.expect_all_well();
}

TEST(NcclGroup, TheSameProcessesFormOneGenerationAfterAnother) {
  Group group(members(2), [](Member& member) -> std::string {
    for (int generation = 0; generation < 5; ++generation) {
      if (auto prepared = member.prepare(); !prepared) return prepared.error().message;
      // Both have the other's new address.
      ++member.cell.note;
      await(
          [&] { return member.cells[0]->note > generation && member.cells[1]->note > generation; });
      auto formed = member.connect();
      if (!formed) return formed.error().message;
      const Status status = sum_once(member, **formed);
      if (!status) return status.error().message;
      if (generation % 2 == 1) (*formed)->abort();
    }
    return "";
  });
  group.expect_all_well();
}

}  // namespace
}  // namespace antdt::nccl
