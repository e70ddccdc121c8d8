// Loading the libraries, in this process.
#include <dlfcn.h>

#include <cstdlib>
#include <map>

#include "core/accelerator/versions.h"
#include "tests/trainer/local_group.h"
#include "tests/trainer/nccl/testing.h"
#include "trainer/nccl/staged_device.h"

namespace antdt::nccl {
namespace {

using ::testing::HasSubstr;

accelerator::Environment environment_of(std::map<std::string, std::string> values) {
  return [values = std::move(values)](const std::string& name) {
    const auto found = values.find(name);
    return found == values.end() ? std::string() : found->second;
  };
}

std::string trouble_with(const accelerator::Environment& environment) {
  const auto loaded =
      load_backend({ANTDT_FAKE_NCCL_LIBRARY, ANTDT_FAKE_NCCL_LIBRARY, 0, environment});
  if (!loaded) return loaded.error().message;
  return (*loaded)->library ? "" : (*loaded)->library.error().message;
}

TEST(NcclLoading, ABackendNamesItsFilesAndVersions) {
  const auto loaded =
      load_backend({ANTDT_FAKE_NCCL_LIBRARY, ANTDT_FAKE_NCCL_LIBRARY, 0, environment_of({})});
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ((*loaded)->library->version, 22703);
  EXPECT_THAT((*loaded)->library->path, HasSubstr("libantdt_fake_nccl.so"));
  EXPECT_THAT((*loaded)->cuda->name(), HasSubstr("(12.4)"));
  EXPECT_EQ((*loaded)->identity, "0000:3B:00.0");
}

TEST(NcclLoading, AnEnvironmentThatMakesCallsBlockIsRefused) {
  for (const char* one : {"1", "01", "0x1"}) {  // as NCCL reads numbers
    EXPECT_THAT(trouble_with(environment_of({{"NCCL_COMM_BLOCKING", one}})),
                HasSubstr(std::string("NCCL_COMM_BLOCKING=") + one));
  }
  EXPECT_EQ(trouble_with(environment_of({{"NCCL_COMM_BLOCKING", "0"}})), "");
}

TEST(NcclLoading, AnEnvironmentThatFixesTheMeetingPlaceIsRefused) {
  EXPECT_THAT(trouble_with(environment_of({{"NCCL_COMM_ID", "10.0.0.1:5555"}})),
              HasSubstr("NCCL_COMM_ID"));
}

TEST(NcclLoading, TheLoadersReasonIsToldForEachFile) {
  const auto loaded = load_library({"/nowhere/a.so", "/nowhere/b.so"});
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().kind, ErrorKind::kUsage);
  EXPECT_THAT(loaded.error().message, HasSubstr("/nowhere/a.so"));
  EXPECT_THAT(loaded.error().message, HasSubstr("/nowhere/b.so"));
}

// As LibTorch for CUDA, with which a program is linked, brings one: what is loaded by its path
// would call functions of that.
TEST(NcclLoading, ASecondNcclBesideThatOfTheProgramIsRefused) {
  Group group({{}}, [](Member&) -> std::string {  // in a process of its own
    if (dlopen(ANTDT_FAKE_NCCL_LIBRARY, RTLD_NOW | RTLD_GLOBAL) == nullptr) return dlerror();
    const auto same = load_library({ANTDT_FAKE_NCCL_LIBRARY});
    if (!same) return same.error().message;
    const auto other = load_library({ANTDT_FAKE_NCCL_WITHOUT_ABORT});
    if (other) return "the second library was loaded";
    const std::string& text = other.error().message;
    if (other.error().kind != ErrorKind::kUsage) return "wrong kind: " + text;
    for (const char* word : {"libantdt_fake_nccl.so", "fake_nccl_without_abort", "LD_PRELOAD"}) {
      if (text.find(word) == std::string::npos) return text;
    }
    return "";
  });
  group.expect_all_well();
}

TEST(NcclLoading, ToDoWithoutTheVariableIsAdvisedOnlyIfItNamedTheSecondNccl) {
  Group group({{}}, [](Member&) -> std::string {  // in a process of its own
    if (dlopen(ANTDT_FAKE_NCCL_LIBRARY, RTLD_NOW | RTLD_GLOBAL) == nullptr) return dlerror();
    const auto advice = [](const char* variable) {
      const auto loaded = load_library({ANTDT_FAKE_NCCL_WITHOUT_ABORT},
                                       environment_of({{"ANTDT_NCCL_LIBRARY", variable}}));
      return loaded ? "the second library was loaded" : loaded.error().message;
    };
    const std::string without = "Do without ANTDT_NCCL_LIBRARY, or have the whole program";
    const std::string named = advice(ANTDT_FAKE_NCCL_WITHOUT_ABORT);
    if (named.find(without) == std::string::npos) return named;
    const std::string searched = advice("");
    if (searched.find("Have the whole program") == std::string::npos) return searched;
    return searched.find("ANTDT_NCCL_LIBRARY") == std::string::npos ? "" : searched;
  });
  group.expect_all_well();
}

TEST(NcclLoading, TheVersionOfALibraryThatCannotBeUsedIsFoundNevertheless) {
  const auto found = find_nccl({ANTDT_FAKE_NCCL_WITHOUT_ABORT});
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->version, 22703);
  EXPECT_FALSE(load_library({ANTDT_FAKE_NCCL_WITHOUT_ABORT}));
}

// A real library without a GPU: its version, its functions, the layout of what it is given, and an
// error that comes from CUDA, since there is no device.
class RealNccl : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* const nccl = std::getenv("ANTDT_TEST_NCCL");
    const char* const cudart = std::getenv("ANTDT_TEST_CUDART");
    if (nccl == nullptr || cudart == nullptr) {
      GTEST_SKIP() << "did not run: ANTDT_TEST_NCCL and ANTDT_TEST_CUDART name no libraries";
    }
    nccl_ = nccl;
    cudart_ = cudart;
  }
  std::string nccl_, cudart_;
};

TEST_F(RealNccl, HasAllFunctionsAndAKnownVersion) {
  const auto found = find_nccl({nccl_});
  ASSERT_TRUE(found) << found.error().message;
  ASSERT_TRUE(accelerator::check_version(found->version))
      << accelerator::version_text(found->version);
  const auto loaded = load_library({nccl_});
  ASSERT_TRUE(loaded) << loaded.error().message;
  std::printf("NCCL %s in %s\n", accelerator::version_text(loaded->version).c_str(),
              loaded->path.c_str());
}

TEST_F(RealNccl, TheRuntimeIsLoadedAndSaysThatThereIsNoDevice) {
  const auto cuda = load_cuda_runtime({cudart_});
  ASSERT_TRUE(cuda) << cuda.error().message;
  std::printf("CUDA runtime %s\n", (*cuda)->name().c_str());
  const auto devices = (*cuda)->devices();
  if (devices && *devices > 0) GTEST_SKIP() << "there is a device here";
  ASSERT_FALSE(devices);
  EXPECT_EQ(devices.error().kind, ErrorKind::kIo);
}

// A runtime that finds devices where there are none, so that NCCL itself is called.
class Pretending final : public CudaRuntime {
 public:
  [[nodiscard]] std::string name() const override { return "pretending"; }
  [[nodiscard]] Result<int> devices() override { return 1; }
  [[nodiscard]] Result<std::string> identity(int) override { return std::string("0"); }
  [[nodiscard]] Status use(int) override { return {}; }
  [[nodiscard]] Result<void*> allocate(std::size_t) override { return nullptr; }
  void free(void*) override {}
  [[nodiscard]] Result<Stream> make_stream() override { return nullptr; }
  void destroy_stream(Stream) override {}
  [[nodiscard]] Status copy(void*, const void*, std::size_t, Stream) override { return {}; }
  [[nodiscard]] Result<Event> make_event() override { return nullptr; }
  void destroy_event(Event) override {}
  [[nodiscard]] Status record(Event, Stream) override { return {}; }
  [[nodiscard]] Result<Work> query(Event) override { return Work::kDone; }
};

TEST_F(RealNccl, ACommunicatorWithoutADeviceFailsWithTheErrorOfCuda) {
  auto loaded = load_library({nccl_});
  ASSERT_TRUE(loaded) << loaded.error().message;
  const auto cuda = load_cuda_runtime({cudart_});
  if (cuda && (*cuda)->devices() && *(*cuda)->devices() > 0) GTEST_SKIP() << "there is a device";
  UniqueId id;
  ASSERT_EQ(loaded->get_unique_id(&id), Code::kSuccess);
  Communicator communicator({*loaded, std::make_shared<Pretending>(), 0});
  const Status formed = communicator.form(id, 0, 2);
  ASSERT_FALSE(formed);
  EXPECT_EQ(formed.error().kind, ErrorKind::kInternal);
  EXPECT_THAT(formed.error().message, HasSubstr("ncclUnhandledCudaError"));
  std::printf("%s\n", formed.error().message.c_str());
  EXPECT_FALSE(communicator.is_stuck());
}

// With a device, real NCCL and a real CUDA runtime: two generations, one closed and one aborted.
TEST_F(RealNccl, OneMemberSumsOnADevice) {
  const auto loaded = load_backend({nccl_, cudart_, 0, accelerator::own_environment()});
  if (!loaded) GTEST_SKIP() << "did not run: " << loaded.error().message;
  Backend& backend = **loaded;
  ASSERT_TRUE(backend.library) << backend.library.error().message;
  ASSERT_TRUE(backend.cuda->use(0));
  constexpr std::size_t kCount = 1 << 20;
  OnDevice device(*backend.cuda, kCount * sizeof(float));
  const std::vector<float> values = numbers_of<float>(0, kCount);
  for (const bool aborted : {false, true, false}) {
    UniqueId id;
    ASSERT_EQ(backend.library->get_unique_id(&id), Code::kSuccess);
    Communicator communicator({*backend.library, backend.cuda, 0});
    ASSERT_EQ(message_of(communicator.form(id, 0, 1)), "");
    device.put(values.data(), kCount * sizeof(float));
    for (int i = 0; i < 20; ++i) {
      ASSERT_EQ(message_of(communicator.enqueue({Operation::Kind::kSum, device.data(), kCount,
                                                 DataType::kFloat32, 0, device.stream()})),
                "");
    }
    ASSERT_EQ(message_of(communicator.finish()), "");
    std::vector<float> back(kCount);
    device.get(back.data(), kCount * sizeof(float));
    EXPECT_EQ(back, values);
    if (aborted) communicator.abort();
    const Status closed = communicator.close();
    if (!aborted) {
      EXPECT_EQ(message_of(closed), "");
    }
    EXPECT_FALSE(communicator.is_stuck());
  }
}

TEST_F(RealNccl, TwoMembersSumThroughHostMemoryOnOneDevice) {
  const auto cuda = load_cuda_runtime({cudart_});
  ASSERT_TRUE(cuda) << cuda.error().message;
  if (!(*cuda)->devices()) GTEST_SKIP() << "did not run: there is no device here";
  trainer::LocalGroup group(2);
  group.run([&](Collective& host) {
    ASSERT_TRUE((*cuda)->use(0));
    constexpr std::size_t kCount = 3'000'000;  // three pieces
    OnDevice device(**cuda, kCount * sizeof(float));
    std::vector<float> values = numbers_of<float>(host.rank(), kCount);
    device.put(values.data(), kCount * sizeof(float));
    StagedDevice staged(host, *cuda, 0);
    ASSERT_EQ(message_of(staged.enqueue_sum({device.data(), kCount, DeviceType::kFloat32},
                                            device.stream())),
              "");
    device.get(values.data(), kCount * sizeof(float));
    for (std::size_t i = 0; i < kCount; ++i) ASSERT_EQ(values[i], 2.0F * (i % 50) + 3);
  });
}

}  // namespace
}  // namespace antdt::nccl
