// Checkpoints between this host and another one, whose file service answers on a thread.
#include "jobd/disk/checkpoint_transfer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <future>
#include <optional>
#include <thread>

#include "antdtd/files/file_reply.h"
#include "antdtd/files/file_service.h"
#include "core/loop.h"
#include "core/os/fs.h"
#include "core/wire/packet.h"
#include "jobd/disk/checkpoint_check.h"
#include "jobd/disk/run_copies.h"

namespace antdt::jobd {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

// The agent of the other host, with the run directory `there`.
class OtherHost {
 public:
  // `refuses`: why a request is refused before it reaches the files; "": it is answered.
  using Refuses = std::function<std::string(const wire::Envelope&)>;
  OtherHost(std::string there, Refuses refuses)
      : there_(std::move(there)), refuses_(std::move(refuses)) {
    std::promise<std::string> endpoint;
    auto known = endpoint.get_future();
    thread_ = std::thread([this, &endpoint] { serve(endpoint); });
    address_ = {known.get(), transport::make_key_pair("job").value(), keys_.public_z85};
  }
  OtherHost(const OtherHost&) = delete;
  OtherHost& operator=(const OtherHost&) = delete;
  ~OtherHost() {
    loop_.stop_from_any_thread();
    thread_.join();
  }
  [[nodiscard]] const HostAddress& address() const { return address_; }

 private:
  void serve(std::promise<std::string>& endpoint) {
    transport::Context context;
    const auto any = [](const std::string&) { return std::string("job"); };
    EXPECT_TRUE(context.serve_authentication(loop_, any));
    auto socket = transport::Socket::bind_tcp(context, "127.0.0.1:0", keys_).value();
    auto files = antdtd::RunFiles::open(there_);
    loop_.watch_socket(socket, [&] {
      while (const auto packet = socket.receive()) {
        if (auto reply = answer(files, *packet)) std::ignore = socket.send(*reply);
      }
    });
    endpoint.set_value(socket.endpoint().substr(std::string("tcp://").size()));
    loop_.run();
    loop_.unwatch_socket(socket);
  }
  std::optional<wire::Packet> answer(Result<antdtd::RunFiles>& files, const wire::Packet& request) {
    const wire::Envelope envelope = wire::open_envelope(request).value();
    if (envelope.kind == wire::FilesDetach::kKind) return {};
    if (envelope.kind == wire::FilesAttach::kKind) {
      return antdtd::file_reply(request, envelope, wire::FilesReady{});
    }
    if (const std::string why = refuses_(envelope); !why.empty()) {
      return antdtd::file_refusal(request, envelope, {ErrorKind::kIo, why});
    }
    return antdtd::answer_file_request(files, request);
  }

  std::string there_;
  Refuses refuses_;
  SteadyClock clock_;
  EventLoop loop_{clock_};
  transport::KeyPair keys_ = transport::make_key_pair("agent").value();
  HostAddress address_;
  std::thread thread_;
};

constexpr const char* kName = "s0000000007-l1-g1-w0.1";
constexpr const char* kUnfinished = ".tmp-7-g1-w0.1";

class CheckpointTransferTest : public testing::Test {
 protected:
  CheckpointTransferTest() {
    HostFiles::Watch watch;
    watch.moved = [this](std::uint64_t bytes) { moved += bytes; };
    auto opened = HostFiles::open(context, other.address(), "ctr", dir / "there", std::move(watch));
    EXPECT_TRUE(opened) << opened.error().message;
    host.emplace(std::move(*opened));
  }
  [[nodiscard]] std::string here(const std::string& name = kName) const {
    return dir / ("here/checkpoints/" + name);
  }
  [[nodiscard]] std::string there(const std::string& name = kName) const {
    return dir / ("there/checkpoints/" + name);
  }
  static void make(const std::string& directory, const std::string& content,
                   const std::string& file = "model.pt") {
    ASSERT_TRUE(make_directories(directory));
    ASSERT_TRUE(write_file_atomic(directory + "/model.pt", content));
    const auto sum = sum_file(directory, "model.pt").value();
    ASSERT_TRUE(write_file_atomic(
        directory + "/MANIFEST.json",
        fmt::format(R"({{"step":7,"files":[{{"name":"{}","bytes":{},"xxh3":"{}"}}]}})", file,
                    sum.bytes, sum.xxh3)));
  }

  TempDir dir;
  std::atomic<int> chunks_left = 1 << 20;  // for which the other host has room
  OtherHost other{dir / "there", [this](const wire::Envelope& request) -> std::string {
                    const bool writes = request.kind == wire::FileWrite::kKind;
                    return writes && --chunks_left < 0 ? "No space left on device" : "";
                  }};
  transport::Context context;
  std::uint64_t moved = 0;
  std::optional<HostFiles> host;
};

TEST_F(CheckpointTransferTest, GoesToTheOtherHostAndComesBack) {
  make(here(), "weights");
  ASSERT_TRUE(push_checkpoint(*host, dir / "here", kName, kUnfinished));
  EXPECT_TRUE(check_checkpoint(there()));
  fs::remove_all(here());
  const Status fetched = fetch_checkpoint(*host, dir / "here", kName);
  ASSERT_TRUE(fetched) << fetched.error().message;
  EXPECT_TRUE(check_checkpoint(here()));
}

TEST_F(CheckpointTransferTest, OnlyChunksThatTheOtherHostHasWrittenHaveMoved) {
  make(here(), std::string(4 << 20, 'x'));  // the fourth chunk is refused
  chunks_left = 3;
  const Status pushed = push_checkpoint(*host, dir / "here", kName, kUnfinished);
  ASSERT_FALSE(pushed);
  EXPECT_THAT(pushed.error().message, HasSubstr("No space left on device"));
  EXPECT_EQ(moved, std::uint64_t{3} << 20);
}

TEST_F(CheckpointTransferTest, NothingIsSentToAHostThatHasIt) {
  make(here(), "weights");
  make(there(), "weights");
  chunks_left = 0;
  const Status pushed = push_checkpoint(*host, dir / "here", kName, kUnfinished);
  EXPECT_TRUE(pushed) << pushed.error().message;
}

TEST_F(CheckpointTransferTest, ABadCopyIsReplacedByAGoodOne) {
  make(here(), "weights");
  const std::string model = there() + "/model.pt";
  for (const auto& spoil :
       {std::function<void()>([&] { ASSERT_TRUE(write_file_atomic(model, "Weights")); }),
        std::function<void()>([&] { fs::remove(model); })}) {
    make(there(), "weights");
    spoil();
    const Status pushed = push_checkpoint(*host, dir / "here", kName, kUnfinished);
    EXPECT_TRUE(pushed) << pushed.error().message;
    EXPECT_TRUE(check_checkpoint(there()));
    EXPECT_FALSE(fs::exists(there(kUnfinished)));
  }
}

TEST_F(CheckpointTransferTest, BeforeItIsKnownWhatIsKeptOnlyWhatIsUnfinishedIsRemoved) {
  make(there(), "weights");
  make(there(kUnfinished), "weights");
  make(there(".tmp-8-g1-w0.1"), "weights");
  ASSERT_TRUE(clean_checkpoints(*host, std::nullopt, {1, 7}));
  EXPECT_FALSE(fs::exists(there(kUnfinished)));
  EXPECT_TRUE(fs::exists(there(".tmp-8-g1-w0.1")));
  EXPECT_TRUE(fs::exists(there()));
  ASSERT_TRUE(clean_checkpoints(*host, std::vector<std::string>{}, {1, 7}));
  EXPECT_FALSE(fs::exists(there()));
}

// A disk of this host that is full.
TEST_F(CheckpointTransferTest, AFileThatThisHostHasNoRoomForIsNotLeft) {
  const std::string disk = dir / "here/checkpoints";
  ASSERT_TRUE(make_directories(disk));
  const bool is_own = ::unshare(CLONE_NEWNS) == 0 &&
                      ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                      ::mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=512k") == 0;
  if (!is_own) GTEST_SKIP() << "no mounts of its own";
  // One chunk: libzmq may leak what is under way when a socket is closed.
  make(there(kUnfinished), std::string(1 << 20, 'x'));
  const auto file = sum_file(there(kUnfinished), "model.pt").value();
  const Status fetched = fetch_unfinished(*host, dir / "here", kUnfinished, {file});
  EXPECT_FALSE(fetched);
  EXPECT_EQ(fetched.error().kind, ErrorKind::kAborted) << fetched.error().message;
  EXPECT_FALSE(fs::exists(here(kUnfinished) + "/model.pt"));
  EXPECT_EQ(::umount(disk.c_str()), 0);
}

// What another host says becomes a path on this one.
TEST_F(CheckpointTransferTest, NoNameThatAnotherHostSaysLeadsOutOfTheCheckpoint) {
  ASSERT_TRUE(make_directories(dir / "here"));
  ASSERT_TRUE(write_file_atomic(dir / "here/state.db", "journal"));
  for (const char* file : {"..", ".", "", "../../state.db", "a/b"}) {
    make(there(), "weights", file);
    const Status fetched = fetch_checkpoint(*host, dir / "here", kName);
    ASSERT_FALSE(fetched) << file;
    EXPECT_EQ(fetched.error().kind, ErrorKind::kCorrupt);
    EXPECT_THAT(fetched.error().message, HasSubstr("names the file"));
    EXPECT_FALSE(fetch_unfinished(*host, dir / "here", kUnfinished, {{file, 10, "00"}})) << file;
  }
  EXPECT_EQ(read_file(dir / "here/state.db").value_or(""), "journal");
}

TEST_F(CheckpointTransferTest, WhatHasNoNameOfACheckpointIsNotListed) {
  make(there(), "weights");
  make(there("s0000000007-l1-g1 w0.1"), "weights");
  make(there("s7-l1"), "weights");
  EXPECT_THAT(look_at(*host, ".probe-1").value().whole, ElementsAre(kName));
}

TEST_F(CheckpointTransferTest, FilesOfNoUnfinishedCheckpointAreNotGathered) {
  SteadyClock clock;
  EventLoop loop(clock);
  RunCopies copies(loop, clock, {dir / "here", "ctr"}, {});
  copies.add(context, other.address());
  for (const std::string name : {"x/..", "..", ".", "", kName, ".tmp-", ".tmp-7/../.."}) {
    std::string error;
    copies.gather(1, dir / ("here/checkpoints/" + name),
                  {{other.address().endpoint, {{"state.db", 10, "00"}}}},
                  [&](const std::string& why) { error = why; });
    EXPECT_THAT(error, HasSubstr("no directory of an unfinished checkpoint")) << name;
  }
  EXPECT_TRUE(copies.end(std::chrono::seconds(10)));
}

}  // namespace
}  // namespace antdt::jobd
