#include "antdtd/files/run_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <filesystem>
#include <thread>

#include "antdtd/files/file_frames.h"
#include "antdtd/files/file_service.h"
#include "core/os/fs.h"
#include "core/running_sum.h"
#include "core/wire/packet.h"

namespace antdt::antdtd {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

std::string sum_of(std::string_view text) {
  RunningSum sum;
  sum.add(text);
  return sum.hex();
}

class RunFilesTest : public testing::Test {
 protected:
  RunFilesTest() {
    auto opened = RunFiles::open(run);
    EXPECT_TRUE(opened) << opened.error().message;
    files.emplace(std::move(*opened));
  }
  Status commit(const std::string& content) {
    return files->commit(
        {".tmp-7-w0.1", "s0000000007-l1-g1-w0.1", {{"model.pt", content.size(), sum_of(content)}}});
  }
  TempDir dir;
  std::string run = dir / "run";
  std::optional<RunFiles> files;
};

TEST_F(RunFilesTest, FilesWrittenInPiecesBecomeAReadableCheckpoint) {
  ASSERT_TRUE(files->write({"checkpoints/.tmp-7-w0.1/model.pt", 0, "wei"}));
  ASSERT_TRUE(files->write({"checkpoints/.tmp-7-w0.1/model.pt", 3, "ghts"}));
  ASSERT_TRUE(commit("weights"));
  ASSERT_TRUE(commit("weights"));  // done already
  const auto read = files->read({"checkpoints/s0000000007-l1-g1-w0.1/model.pt", 2, 100});
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->data, "ights");
  EXPECT_EQ(read->size, 7U);
}

TEST_F(RunFilesTest, AnInterruptedFileGoesOnFromWhatIsThere) {
  ASSERT_TRUE(files->write({"checkpoints/.tmp-7-w0.1/model.pt", 0, "wei"}));
  RunFiles next = *RunFiles::open(run);  // its predecessor was killed
  const auto sum = next.sum({"checkpoints/.tmp-7-w0.1/model.pt"});
  ASSERT_TRUE(sum);
  EXPECT_EQ(sum->bytes, 3U);
  EXPECT_EQ(sum->xxh3, sum_of("wei"));
  ASSERT_TRUE(next.write({"checkpoints/.tmp-7-w0.1/model.pt", 3, "ghts"}));
  EXPECT_TRUE(
      next.commit({".tmp-7-w0.1", "s0000000007-l1-g1-w0.1", {{"model.pt", 7, sum_of("weights")}}}));
}

TEST_F(RunFilesTest, DamagedFilesAreNoCheckpointAndAreSentAgain) {
  ASSERT_TRUE(files->write({"checkpoints/.tmp-7-w0.1/model.pt", 0, "wights"}));
  const Status committed = commit("weights");
  ASSERT_FALSE(committed);
  EXPECT_THAT(committed.error().message, HasSubstr("sent again"));
  EXPECT_FALSE(fs::exists(run + "/checkpoints/s0000000007-l1-g1-w0.1"));
  EXPECT_EQ(files->sum({"checkpoints/.tmp-7-w0.1/model.pt"})->bytes, 0U);
}

TEST_F(RunFilesTest, ABadCheckpointIsReplacedByWhatIsCommittedAgain) {
  const std::string to = run + "/checkpoints/s0000000007-l1-g1-w0.1";
  const auto send = [&] {
    return files->write({"checkpoints/.tmp-7-w0.1/model.pt", 0, "weights"});
  };
  ASSERT_TRUE(send());
  ASSERT_TRUE(commit("weights"));
  ASSERT_TRUE(write_file_atomic(to + "/model.pt", "Weights"));  // as long as it was
  ASSERT_FALSE(commit("weights")) << "nothing was sent";
  EXPECT_EQ(*read_file(to + "/model.pt"), "Weights");
  ASSERT_TRUE(send());
  ASSERT_TRUE(commit("weights"));
  EXPECT_EQ(*read_file(to + "/model.pt"), "weights");
  fs::remove(to + "/model.pt");
  ASSERT_TRUE(send());
  ASSERT_TRUE(commit("weights"));
  EXPECT_EQ(*read_file(to + "/model.pt"), "weights");
  EXPECT_FALSE(fs::exists(run + "/checkpoints/.tmp-7-w0.1"));
}

TEST_F(RunFilesTest, NoPathLeadsOutOfTheRunDirectory) {
  ASSERT_TRUE(write_file_atomic(dir / "secret", "secret"));
  ASSERT_TRUE(make_directories(run + "/logs"));
  ASSERT_TRUE(make_directories(run + "/checkpoints"));
  fs::create_symlink(dir / "secret", run + "/logs/w0.1.out");
  fs::create_directory_symlink(dir.path(), run + "/checkpoints/s0000000001-l1-g1-w0.1");
  for (const char* path :
       {"/etc/passwd", "../secret", "logs/../../secret", "checkpoints/../logs/w0.1.out",
        "checkpoints/s/../../../secret", "logs/w0.1.out", "logs//", "", "checkpoints",
        "checkpoints/s0000000001-l1-g1-w0.1/secret", "jobd.log", "state.db",
        "checkpoints/.tmp-1/a/b"}) {
    const auto read = files->read({path, 0, 10});
    EXPECT_FALSE(read) << path << ": " << read->data;
  }
  for (const char* path : {"logs/w1.1.out", "checkpoints/s0000000001-l1-g1-w0.1/x",
                           "checkpoints/.tmp-1/../../x", "x", "checkpoints/.tmp-1"}) {
    EXPECT_FALSE(files->write({path, 0, "x"})) << path;
  }
  for (const char* name : {"..", ".", "", "../logs", "logs", "a/b"}) {
    EXPECT_FALSE(files->remove({name})) << name;
    EXPECT_FALSE(files->commit({".tmp-1", name, {}})) << name;
    EXPECT_FALSE(files->probe({name}, "ctr-1")) << name;
  }
  EXPECT_TRUE(fs::exists(dir / "secret"));
  EXPECT_FALSE(fs::exists(dir / "x"));
}

TEST_F(RunFilesTest, ChunksAreBounded) {
  ASSERT_TRUE(files->write({"checkpoints/.tmp-7-w0.1/model.pt", 0, "weights"}));
  EXPECT_FALSE(files->read({"checkpoints/.tmp-7-w0.1/model.pt", 0, wire::kMaxFileChunk + 1}));
  EXPECT_EQ(files->read({"checkpoints/.tmp-7-w0.1/model.pt", ~0ULL, 10})->data, "");
}

TEST_F(RunFilesTest, HostsThatShareTheDirectoryGiveTheSameAnswer) {
  RunFiles same = *RunFiles::open(run);
  RunFiles other = *RunFiles::open(dir / "other");
  const std::string identity = files->probe({".probe-1"}, "ctr-1")->identity;
  EXPECT_EQ(same.probe({".probe-1"}, "ctr-1")->identity, identity);
  EXPECT_NE(other.probe({".probe-1"}, "ctr-1")->identity, identity);
  ASSERT_TRUE(files->remove({".probe-1"}));
  EXPECT_NE(files->probe({".probe-1"}, "ctr-1")->identity, identity);
}

TEST_F(RunFilesTest, AReaderCreatesNothing) {
  EXPECT_TRUE(files->list()->checkpoints.empty());
  EXPECT_FALSE(files->read({"logs/w0.1.out", 0, 10}));
  EXPECT_EQ(files->sum({"checkpoints/.tmp-7-w0.1/model.pt"})->bytes, 0U);
  EXPECT_TRUE(files->remove({"s0000000007-l1-g1-w0.1"}));
  EXPECT_FALSE(fs::exists(run));
}

TEST_F(RunFilesTest, ListsAndRemoves) {
  ASSERT_TRUE(files->write({"checkpoints/.tmp-7-w0.1/MANIFEST.json", 0, "{}"}));
  ASSERT_TRUE(files->commit({".tmp-7-w0.1", "s0000000007-l1-g1-w0.1", {}}));
  ASSERT_TRUE(files->write({"checkpoints/.tmp-8-w0.1/model.pt", 0, "x"}));
  auto listed = files->list();
  ASSERT_TRUE(listed);
  ASSERT_EQ(listed->checkpoints.size(), 2U);
  for (const wire::FileEntry& entry : listed->checkpoints) {
    EXPECT_EQ(entry.whole, entry.name[0] == 's') << entry.name;
    EXPECT_TRUE(files->remove({entry.name}));
    EXPECT_TRUE(files->remove({entry.name}));
  }
  EXPECT_TRUE(files->list()->checkpoints.empty());
}

// Two runs have the same path, each on its own launching host.
TEST_F(RunFilesTest, NothingIsWrittenOrRemovedInTheRunDirectoryOfAnotherJob) {
  ASSERT_TRUE(files->write({"checkpoints/.tmp-7-w0.1/model.pt", 0, "weights"}));
  ASSERT_TRUE(files->check_is_of("ctr-1")) << "where no job.json is, no run began";
  ASSERT_TRUE(write_file_atomic(run + "/job.json", R"({"job":{"id":"ctr-2"}})", 0600));
  Result<RunFiles> opened = RunFiles::open(run);
  const auto ask = [&](const std::string& job, const auto& message) {
    wire::Envelope envelope;
    envelope.job = job;
    return answer_file_request(opened, wire::make_packet(std::move(envelope), message));
  };
  const wire::FileRemove remove{".tmp-7-w0.1"};
  const auto refused = wire::decode<wire::Refused>(ask("ctr-1", remove).body);
  ASSERT_TRUE(refused);
  EXPECT_THAT(refused->reason, HasSubstr("is the run directory of another job (ctr-2)"));
  EXPECT_TRUE(fs::exists(run + "/checkpoints/.tmp-7-w0.1/model.pt"));
  EXPECT_TRUE(wire::open_reply<wire::FileListed>(ask("ctr-1", wire::FileList{})));
  EXPECT_TRUE(files->check_is_of("ctr-2"));
}

// The launching host removed the run directory, and began another run at the same path.
TEST_F(RunFilesTest, AnotherJobsCopiesAreNeitherWrittenRemovedNorTaken) {
  ASSERT_TRUE(files->probe({".probe-1"}, "ctr-1"));
  EXPECT_TRUE(files->probe({".probe-2"}, "ctr-1")) << "its next job daemon";
  const auto taken = files->probe({".probe-3"}, "ctr-2");
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().kind, ErrorKind::kUsage);
  EXPECT_THAT(taken.error().message, HasSubstr("is the run directory of another job (ctr-1)"));
  EXPECT_FALSE(files->check_is_of("ctr-2"));
  EXPECT_TRUE(files->check_is_of("ctr-1"));
  fs::remove_all(run + "/checkpoints");
  EXPECT_TRUE(files->probe({".probe-3"}, "ctr-2")) << "once they are removed";
}

TEST(FileService, AnswersWhateverComes) {
  TempDir dir;
  Result<RunFiles> files = RunFiles::open(dir / "run");
  wire::Envelope envelope;
  envelope.seq = 9;
  wire::Packet request = wire::make_packet(envelope, wire::FileRead{"checkpoints/s1/x", 0, 10});
  request.peer = "link";
  const wire::Packet missing = answer_file_request(files, request);
  EXPECT_EQ(missing.peer, "link");
  EXPECT_EQ(wire::open_envelope(missing)->seq, 9U);
  EXPECT_EQ(wire::decode<wire::Refused>(missing.body)->code, wire::RefusalCode::kMissing);
  request.body = "\xc1";
  EXPECT_EQ(wire::decode<wire::Refused>(answer_file_request(files, request).body)->code,
            wire::RefusalCode::kInvalid);
  request.envelope = "nonsense";
  EXPECT_FALSE(wire::open_reply<wire::FileData>(answer_file_request(files, request)));
}

TEST(FileFrames, ComeOutAsTheyWentInHoweverTheyAreCut) {
  const wire::Packet packet{"peer", "", "envelope", std::string(300000, 'x')};
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
  const OwnedFd ours(ends[0]), theirs(ends[1]);
  std::thread writer([&] {
    for (int n = 0; n < 5; ++n) {
      FrameWriter frame(packet);
      EXPECT_EQ(frame.write(theirs.get()), FrameWriter::Outcome::kAll);
    }
    ::shutdown(theirs.get(), SHUT_WR);
  });
  FrameReader reader;
  int found = 0;
  for (;;) {
    const auto [room, most] = reader.room();
    const ssize_t got = ::recv(ours.get(), room, std::min<std::size_t>(most, 70001), 0);
    if (got <= 0) break;
    reader.taken(static_cast<std::size_t>(got));
    const auto next = reader.next();
    ASSERT_TRUE(next);
    if (!*next) continue;
    EXPECT_EQ((*next)->peer, "peer");
    EXPECT_EQ((*next)->envelope, "envelope");
    EXPECT_EQ((*next)->body, packet.body);
    ++found;
  }
  writer.join();
  EXPECT_EQ(found, 5);
  const auto [room, most] = reader.room();
  std::fill_n(room, 12, '\xff');
  reader.taken(12);
  EXPECT_FALSE(reader.next());
}

}  // namespace
}  // namespace antdt::antdtd
