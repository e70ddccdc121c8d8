// A mapped file that cannot be read any more ends the process with its name.
#include "trainer/data/index/lost_files.h"

#include <gmock/gmock.h>
#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <tuple>

#include "tests/trainer/data/testing.h"
#include "trainer/data/index/mapped_file.h"

namespace antdt::data {
namespace {

constexpr int kCode = 74;

// Each test dies in a process of its own.
class LostFilesTest : public DataTest {
 protected:
  LostFilesTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
  // Reads the last byte of a file that was cut short since it was mapped.
  static void read_what_was_cut_off(const std::string& path) {
    const auto mapped = MappedFile::open(path);
    std::filesystem::resize_file(path, 1);
    if (mapped->bytes().back() == 'x') ::_exit(0);
  }
  // Sanitizers have a handler of their own.
  static void forget_other_handlers() { std::signal(SIGBUS, SIG_DFL); }
  std::string three_pages(const std::string& name) {
    return file(name, std::string(3 * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)), 'x'));
  }
};

TEST_F(LostFilesTest, AFileThatWasCutShortEndsTheProgramWithItsName) {
  EXPECT_EXIT(
      {
        const auto other = MappedFile::open(three_pages("other.tsv"));
        end_when_a_file_is_lost("antdt-trainer", kCode);
        read_what_was_cut_off(three_pages("a.tsv"));
      },
      testing::ExitedWithCode(kCode), "antdt-trainer: .*/a.tsv cannot be read any more");
}

TEST_F(LostFilesTest, AFileThatWasClosedAndAnotherOpenedInItsPlaceIsTheOtherOne) {
  EXPECT_EXIT(
      {
        end_when_a_file_is_lost("antdt-trainer", kCode);
        for (int i = 0; i < 3; ++i) std::ignore = MappedFile::open(three_pages("before.tsv"));
        read_what_was_cut_off(three_pages("a.tsv"));
      },
      testing::ExitedWithCode(kCode), "/a.tsv cannot be read any more");
}

TEST_F(LostFilesTest, AnErrorElsewhereIsTheSignalThatItWas) {
  EXPECT_EXIT(
      {
        forget_other_handlers();
        const std::string path = three_pages("a.tsv");
        const auto mapped = MappedFile::open(path);
        end_when_a_file_is_lost("antdt-trainer", kCode);
        std::raise(SIGBUS);
      },
      testing::KilledBySignal(SIGBUS), "");
  EXPECT_EXIT(
      {
        forget_other_handlers();
        const std::string path = three_pages("a.tsv");
        end_when_a_file_is_lost("antdt-trainer", kCode);
        std::FILE* own = std::fopen(path.c_str(), "r");
        void* memory = ::mmap(nullptr, 4096, PROT_READ, MAP_SHARED, fileno(own), 0);
        std::filesystem::resize_file(path, 0);
        if (*static_cast<volatile const char*>(memory) == 'x') ::_exit(0);
      },
      testing::KilledBySignal(SIGBUS), "");
}

TEST_F(LostFilesTest, AProgramThatDoesNotAskForItDiesAsItDid) {
  EXPECT_EXIT(
      {
        forget_other_handlers();
        read_what_was_cut_off(three_pages("a.tsv"));
      },
      testing::KilledBySignal(SIGBUS), "");
}

}  // namespace
}  // namespace antdt::data
