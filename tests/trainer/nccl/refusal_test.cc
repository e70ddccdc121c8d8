// Groups that cannot use NCCL, and say so.
#include <filesystem>
#include <fstream>
#include <set>

#include "tests/trainer/nccl/testing.h"
#include "trainer/nccl/half.h"

namespace antdt::nccl {
namespace {

// A body whose group must be refused with these words in the message: for the ranks that are at
// fault as a mistake of theirs, and for the others so that they may form a group without them.
Body refused_with(std::vector<std::string> words, std::set<std::uint32_t> at_fault) {
  return [words = std::move(words), at_fault = std::move(at_fault)](Member& member) -> std::string {
    auto formed = member.form();
    if (formed) return "the group was formed";
    const bool is_at_fault = at_fault.contains(member.rank);
    if (formed.error().kind != (is_at_fault ? ErrorKind::kUsage : ErrorKind::kIo)) {
      return "wrong kind: " + formed.error().message;
    }
    for (const std::string& word : words) {
      if (formed.error().message.find(word) == std::string::npos) return formed.error().message;
    }
    return "";
  };
}

TEST(NcclRefusal, DifferentVersionsAreRefusedOnEveryMemberAndNameTheHosts) {
  MemberSetup other{"device=own version=22602"};
  other.host = "host-b";
  Group group(
      {{}, other, {}},
      refused_with({"2.27.3 on host-a", "2.26.2 on host-b", "Install the same release"}, {1}));
  group.expect_all_well();
}

// As when a worker is started again on a host that was set up anew meanwhile.
TEST(NcclRefusal, OneMemberThatDiffersEndsAloneAndTheOthersFormAGroupAgain) {
  const Body refused = refused_with({"Install the same release"}, {2});
  Group group({{}, {}, {"device=own version=22602"}}, [&](Member& member) -> std::string {
    const std::string trouble = refused(member);
    if (!trouble.empty() || member.rank == 2) return trouble;
    member.size = 2;
    member.cells.pop_back();
    member.cell.ready = false;
    member.cell.note = -1;
    await([&] { return member.cells[0]->note < 0 && member.cells[1]->note < 0; });
    auto again = member.form();
    if (!again) return again.error().message;
    return message_of(sum_once(member, **again));
  });
  group.expect_all_well();
}

// As when the first host was set up anew, and its workers come back to the one that went on.
TEST(NcclRefusal, NewcomersThatDifferEndAloneThoughTheirRanksAreLowerAndTheyAreMore) {
  MemberSetup newcomer{"device=own version=22602"}, holder;
  holder.holds_state = true;
  Group group({newcomer, newcomer, holder}, refused_with({"Install the same release"}, {0, 1}));
  group.expect_all_well();
}

TEST(NcclRefusal, AMissingLibraryIsRefusedOnEveryMemberAndNamesTheHost) {
  MemberSetup lacks;
  lacks.host = "host-b";
  lacks.nccl = "/nowhere/libnccl.so.2";
  Group group({{}, lacks},
              refused_with({"host-b", "/nowhere/libnccl.so.2", "ANTDT_NCCL_LIBRARY"}, {1}));
  group.expect_all_well();
}

TEST(NcclRefusal, AMissingFunctionIsNamed) {
  MemberSetup lacks;
  lacks.nccl = ANTDT_FAKE_NCCL_WITHOUT_ABORT;
  Group group({{}, lacks}, refused_with({"ncclCommAbort", "antdt_fake_nccl_without_abort"}, {1}));
  group.expect_all_well();
}

TEST(NcclRefusal, AnOldVersionIsRefusedWithTheOnesThatAreKnownToWork) {
  const MemberSetup old{"device=own version=21805"};
  Group group({old, old}, refused_with({"2.18.5", "too old", "2.26.2"}, {0, 1}));
  group.expect_all_well();
}

TEST(NcclRefusal, AVersionThatNobodyExaminedIsRefused) {
  const MemberSetup is_new{"device=own version=30000"};
  Group group({is_new, is_new}, refused_with({"3.0.0", "newer"}, {0, 1}));
  group.expect_all_well();
}

TEST(NcclRefusal, AHostWithoutADeviceIsRefused) {
  MemberSetup lacks{"devices=0"};
  lacks.host = "host-b";
  Group group({{}, lacks}, refused_with({"host-b", "no CUDA-capable device"}, {1}));
  group.expect_all_well();
}

TEST(NcclRefusal, TwoMembersOnOneDeviceAreRefused) {
  const MemberSetup same{"device=0000:3B:00.0"};
  Group group({same, same}, refused_with({"host-a", "0000:3B:00.0", "resources.gpus"}, {1}));
  group.expect_all_well();
}

// As with an NCCL_SOCKET_IFNAME that no interface of that host has.
TEST(NcclRefusal, RankZeroThatCannotMakeTheIdIsAtFault) {
  MemberSetup cannot{"device=own id_error=5"};
  cannot.host = "host-b";
  Group group({cannot, {}}, refused_with({"ncclInvalidUsage", "no socket interface found"}, {0}));
  group.expect_all_well();
}

// A configuration file of NCCL on a host, until the end of a test.
class NcclConf {
 public:
  explicit NcclConf(const std::string& text)
      : path_(fmt::format("{}antdt-nccl-conf-{}", ::testing::TempDir(), getpid())) {
    std::ofstream(path_) << text;
  }
  ~NcclConf() { std::filesystem::remove(path_); }
  NcclConf(const NcclConf&) = delete;
  NcclConf& operator=(const NcclConf&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// The library of the tests ends a process whose communicator is blocking.
TEST(NcclConfigurationFile, DoesNotMakeCallsBlock) {
  const NcclConf conf("NCCL_COMM_BLOCKING=1\n");
  MemberSetup configured;
  configured.nccl_conf = conf.path();
  Group group({configured, configured}, [](Member& member) -> std::string {
    auto formed = member.form();
    if (!formed) return formed.error().message;
    return message_of(sum_once(member, **formed));
  });
  group.expect_all_well();
}

TEST(NcclConfigurationFile, ThatFixesTheMeetingPlaceIsRefusedByTheRankThatWouldMeetThere) {
  const NcclConf conf("NCCL_COMM_ID=10.0.0.1:5555\n");
  MemberSetup configured;
  configured.nccl_conf = conf.path();
  Group group({configured, {}}, refused_with({"NCCL_COMM_ID=10.0.0.1:5555", "nccl.conf"}, {0}));
  group.expect_all_well();
}

TEST(NcclRefusal, WithEncryptionNcclIsRefusedBetweenHosts) {
  MemberSetup here, there;
  here.encrypt = there.encrypt = true;
  there.host = "host-b";
  Group group({here, there}, refused_with({"cluster.encrypt"}, {1}));
  group.expect_all_well();
}

TEST(NcclRefusal, WithEncryptionNcclIsUsedInsideOneHost) {
  MemberSetup encrypts;
  encrypts.encrypt = true;
  Group group({encrypts, encrypts}, [](Member& member) -> std::string {
    auto formed = member.form();
    if (!formed) return formed.error().message;
    return message_of(sum_once(member, **formed));
  });
  group.expect_all_well();
}

// "auto": the same sums through host memory, and a message that says why.
TEST(NcclFallback, AGroupWithoutNcclSumsDeviceMemoryThroughTheInnerCollective) {
  MemberSetup has, lacks;
  has.required = lacks.required = false;
  lacks.orders = "device=own version=21805";
  Group group({has, lacks, has}, [](Member& member) -> std::string {
    auto formed = member.form();
    if (!formed) return formed.error().message;
    if (member.fallback.find("2.18.5") == std::string::npos) return "told: " + member.fallback;
    if ((member.rank == 1) != !(*member.backend)->library) return "the wrong member lacks NCCL";
    if ((*formed)->description() != "tcp (3 members)") return (*formed)->description();
    trainer::DeviceCollective* const device = (*formed)->device();
    std::vector<float> values = numbers_of<float>(member.rank, 2'000'000);
    OnDevice memory(*(*member.backend)->cuda, values.size() * sizeof(float));
    memory.put(values.data(), values.size() * sizeof(float));
    const Status summed =
        device->enqueue_sum({memory.data(), values.size(), DeviceType::kFloat32}, memory.stream());
    if (!summed) return summed.error().message;
    memory.get(values.data(), values.size() * sizeof(float));
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (values[i] != static_cast<float>(3 * (i % 50) + 9)) return "a sum is wrong";
    }
    std::vector<std::uint16_t> halves(1000, to_bfloat16(0.5F));
    memory.put(halves.data(), 2000);
    const Status halved =
        device->enqueue_sum({memory.data(), 1000, DeviceType::kBfloat16}, memory.stream());
    if (!halved) return halved.error().message;
    memory.get(halves.data(), 2000);
    if (halves != std::vector<std::uint16_t>(1000, to_bfloat16(1.5F))) return "a half is wrong";
    const DeviceBytes bytes{memory.data(), 7'000'000};
    Status passed;
    if (member.rank > 0) passed = device->enqueue_receive_left(bytes, memory.stream());
    if (passed && member.rank < 2) passed = device->enqueue_send_right(bytes, memory.stream());
    return message_of(passed);
  });
  group.expect_all_well();
}

TEST(NcclFallback, AMemberWithoutCudaHasNoOperationsOnDevices) {
  MemberSetup has, lacks;
  has.required = lacks.required = false;
  lacks.orders = "devices=0";
  Group group({has, lacks}, [](Member& member) -> std::string {
    auto formed = member.form();
    if (!formed) return formed.error().message;
    const bool has_device = (*formed)->device() != nullptr;
    if (has_device != (member.rank == 0)) return "the wrong member has operations on devices";
    std::vector<float> values(10, 1);
    return message_of((*formed)->allreduce_sum(values));
  });
  group.expect_all_well();
}

TEST(NcclFallback, AnAbortEndsWaitingForTheDevice) {
  MemberSetup lacks{"device=own version=21805"};
  lacks.required = false;
  Group group({lacks, lacks}, [](Member& member) -> std::string {
    auto formed = member.form();
    if (!formed) return formed.error().message;
    if (member.rank == 1) {
      await([&] { return member.cells[0]->note == 1; });
      (*formed)->abort();
      return "";
    }
    // The other member never sums.
    member.cell.note = 1;
    const Status status = sum_once(member, **formed);
    return status ? "the call succeeded" : "";
  });
  group.expect_all_well();
}

}  // namespace
}  // namespace antdt::nccl
