#include "core/accelerator/find_library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

namespace antdt::accelerator {
namespace {

using ::testing::ElementsAre;

class FindLibrary : public ::testing::Test {
 protected:
  ~FindLibrary() override { std::filesystem::remove_all(root_); }
  std::string put(const std::string& path) {
    const std::filesystem::path file = root_ + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << "x";
    return file.string();
  }
  [[nodiscard]] Environment environment() const {
    return [this](const std::string& name) {
      const auto found = variables_.find(name);
      return found == variables_.end() ? std::string() : found->second;
    };
  }
  const std::string root_ = ::testing::TempDir() + "antdt-find-library-" +
                            ::testing::UnitTest::GetInstance()->current_test_info()->name();
  std::map<std::string, std::string> variables_;
};

TEST_F(FindLibrary, ANamedFileIsTheOnlyOne) {
  variables_["ANTDT_NCCL_LIBRARY"] = "/b.so";
  EXPECT_THAT(nccl_candidates("/a.so", environment(), root_), ElementsAre("/a.so"));
  EXPECT_THAT(nccl_candidates("", environment(), root_), ElementsAre("/b.so"));
  variables_["ANTDT_CUDART_LIBRARY"] = "/c.so";
  EXPECT_THAT(cudart_candidates("", environment(), root_), ElementsAre("/c.so"));
}

TEST_F(FindLibrary, TheLoaderComesBeforeWheelsAndTheNewestPythonFirst) {
  const std::string venv = put("/venv/lib/python3.11/site-packages/nvidia/nccl/lib/libnccl.so.2");
  const std::string in_3_9 =
      put("/usr/local/lib/python3.9/dist-packages/nvidia/nccl/lib/libnccl.so.2");
  const std::string in_3_11 =
      put("/usr/local/lib/python3.11/dist-packages/nvidia/nccl/lib/libnccl.so.2");
  put("/usr/lib/python3/dist-packages/other");
  variables_["VIRTUAL_ENV"] = "/venv";
  EXPECT_THAT(nccl_candidates("", environment(), root_),
              ElementsAre("libnccl.so.2", venv, in_3_11, in_3_9));
}

TEST_F(FindLibrary, WheelsOfEachCudaAreKnown) {
  const std::string of_12 =
      put("/home/lib/python3.11/site-packages/nvidia/cuda_runtime/lib/libcudart.so.12");
  const std::string of_13 =
      put("/home/lib/python3.11/site-packages/nvidia/cu13/lib/libcudart.so.13");
  variables_["VIRTUAL_ENV"] = "/home";
  EXPECT_THAT(cudart_candidates("", environment(), root_),
              ElementsAre("libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0", of_13, of_12));
}

TEST_F(FindLibrary, AnInstalledLibrarySaysItsVersionByItsName) {
  const std::string real = put("/usr/lib/x86_64-linux-gnu/libnccl.so.2.27.5");
  std::filesystem::create_symlink(real, root_ + "/usr/lib/x86_64-linux-gnu/libnccl.so.2");
  const InstalledLibrary found = installed_nccl(environment(), root_);
  EXPECT_EQ(found.path, "/usr/lib/x86_64-linux-gnu/libnccl.so.2");
  EXPECT_EQ(found.version, "2.27.5");
}

TEST_F(FindLibrary, AWheelSaysItsVersionByTheNameOfItsFolder) {
  const std::string packages = "/home/ada/.local/lib/python3.11/site-packages/";
  put(packages + "nvidia/nccl/lib/libnccl.so.2");
  put(packages + "nvidia_nccl_cu12-2.26.2.dist-info/METADATA");
  put(packages + "nvidia/cu13/lib/libcudart.so.13");
  put(packages + "nvidia_cuda_runtime-13.0.96.dist-info/METADATA");
  variables_["HOME"] = "/home/ada";
  const InstalledLibrary nccl = installed_nccl(environment(), root_);
  EXPECT_EQ(nccl.path, packages + "nvidia/nccl/lib/libnccl.so.2");
  EXPECT_EQ(nccl.version, "2.26.2");
  const InstalledLibrary cudart = installed_cudart(environment(), root_);
  EXPECT_EQ(cudart.path, packages + "nvidia/cu13/lib/libcudart.so.13");
  EXPECT_EQ(cudart.version, "13.0.96");
}

TEST_F(FindLibrary, TheLoadersPathComesFirstAndAFileMayNotSayItsVersion) {
  put("/usr/lib64/libnccl.so.2");
  put("/opt/nccl/libnccl.so.2");
  variables_["LD_LIBRARY_PATH"] = "/nowhere::/opt/nccl";
  EXPECT_EQ(installed_nccl(environment(), root_).path, "/opt/nccl/libnccl.so.2");
  EXPECT_EQ(installed_nccl(environment(), root_).version, "");
  variables_["ANTDT_NCCL_LIBRARY"] = "/usr/lib64/libnccl.so.2";
  EXPECT_EQ(installed_nccl(environment(), root_).path, "/usr/lib64/libnccl.so.2");
  variables_["ANTDT_NCCL_LIBRARY"] = "/nowhere/libnccl.so.2";
  EXPECT_EQ(installed_nccl(environment(), root_).path, "");
  EXPECT_EQ(installed_cudart(environment(), root_).path, "");
}

}  // namespace
}  // namespace antdt::accelerator
