// The agent's side of file services, with processes in place of the services that only wait.
#include "antdtd/files/file_services.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <string>
#include <vector>

#include "core/os/spawn.h"
#include "core/wire/packet.h"

namespace antdt::antdtd {
namespace {

using testing::ElementsAre;

// A process that ends when the other end of its socket is closed.
Result<FileServices::Child> start_waiting() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return fail(ErrorKind::kIo, "no socket pair");
  }
  FileServices::Child child;
  child.socket = OwnedFd(ends[0]);
  const OwnedFd theirs(ends[1]);
  Spawn what;
  what.program = "cat";
  what.standard_input = theirs.get();
  ANTDT_TRY(const Spawned started, spawn(what));
  child.pid = started.pid;
  return child;
}

class FileServicesTest : public testing::Test {
 protected:
  void attach(const std::string& peer, const std::string& run_dir) {
    wire::Envelope envelope;
    envelope.job = "ctr";
    send(peer, wire::make_packet(envelope, wire::FilesAttach{run_dir}));
  }
  template <class T>
  void say(const std::string& peer, const T& message) {
    send(peer, wire::make_packet({}, message));
  }
  void send(const std::string& peer, wire::Packet packet) {
    packet.peer = peer;
    const auto envelope = wire::open_envelope(packet);
    ASSERT_TRUE(envelope);
    services.handle(*envelope, std::move(packet));
  }

  SteadyClock clock;
  EventLoop loop{clock};
  std::vector<std::string> started, answers;
  FileServices services{
      loop,
      {[this](const std::string& run_dir, const std::string&) {
         started.push_back(run_dir);
         return start_waiting();
       },
       [](const std::string&, const std::string&) -> Status { return {}; },
       [this](const wire::Packet& packet) {
         answers.push_back(packet.peer + ": " + wire::open_envelope(packet)->kind);
       }}};
};

TEST_F(FileServicesTest, ALinkThatAttachesAgainKeepsItsService) {
  attach("a", "/run");
  attach("a", "/run");
  EXPECT_THAT(started, ElementsAre("/run"));
  EXPECT_THAT(answers, ElementsAre("a: files-ready", "a: files-ready"));
}

TEST_F(FileServicesTest, ALinkThatAttachesToAnotherRunLeavesTheFirst) {
  attach("a", "/one");
  attach("a", "/two");
  EXPECT_THAT(answers, ElementsAre("a: files-ready", "a: files-ready"));
  attach("b", "/one");
  EXPECT_THAT(started, ElementsAre("/one", "/two", "/one")) << "nobody used it, so it had ended";
}

TEST_F(FileServicesTest, AServiceStaysWhileAnotherLinkUsesIt) {
  attach("a", "/run");
  attach("b", "/run");
  say("a", wire::FilesDetach{});
  attach("a", "/run");
  EXPECT_THAT(started, ElementsAre("/run"));
  say("c", wire::FileList{});
  EXPECT_THAT(answers.back(), "c: refused") << "it attached to nothing";
}

}  // namespace
}  // namespace antdt::antdtd
