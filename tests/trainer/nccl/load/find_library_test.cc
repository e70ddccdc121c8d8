#include "trainer/nccl/load/find_library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

namespace antdt::nccl {
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
  put("/usr/lib/python3/dist-packages/other");
  variables_["VIRTUAL_ENV"] = root_ + "/venv";
  EXPECT_THAT(nccl_candidates("", environment(), root_), ElementsAre("libnccl.so.2", venv, in_3_9));
}

TEST_F(FindLibrary, WheelsOfEachCudaAreKnown) {
  const std::string of_12 =
      put("/home/lib/python3.11/site-packages/nvidia/cuda_runtime/lib/libcudart.so.12");
  const std::string of_13 =
      put("/home/lib/python3.11/site-packages/nvidia/cu13/lib/libcudart.so.13");
  variables_["VIRTUAL_ENV"] = root_ + "/home";
  EXPECT_THAT(cudart_candidates("", environment(), root_),
              ElementsAre("libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0", of_13, of_12));
}

}  // namespace
}  // namespace antdt::nccl
