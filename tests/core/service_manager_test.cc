#include "core/os/service_manager.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "core/os/fs.h"

namespace antdt {
namespace {

using testing::HasSubstr;

constexpr pid_t kOwn = 4711;

// A manager's end: a datagram socket at a path, or an abstract one.
OwnedFd listen_at(const std::string& name) {
  OwnedFd fd(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, name.data(), name.size());
  if (name.front() == '@') address.sun_path[0] = '\0';
  const std::size_t size = offsetof(sockaddr_un, sun_path) + name.size();
  EXPECT_EQ(bind(fd.get(), reinterpret_cast<sockaddr*>(&address), static_cast<socklen_t>(size)), 0)
      << std::strerror(errno);
  return fd;
}

std::string read_from(const OwnedFd& fd) {
  std::array<char, 4096> text{};
  const ssize_t size = recv(fd.get(), text.data(), text.size(), 0);
  return size < 0 ? "nothing" : std::string(text.data(), static_cast<std::size_t>(size));
}

TEST(NotifySettingsTest, NobodyAsksWithoutASocket) {
  EXPECT_EQ(notify_settings(nullptr, "1000", nullptr, kOwn).socket, "");
  EXPECT_FALSE(notify_settings("", "1000", nullptr, kOwn).watchdog);
}

TEST(NotifySettingsTest, AWatchdogIsInMicroseconds) {
  const NotifySettings asked = notify_settings("/run/notify", "90000000", "4711", kOwn);
  EXPECT_EQ(asked.socket, "/run/notify");
  EXPECT_EQ(asked.watchdog, std::chrono::seconds(90));
  EXPECT_EQ(notify_settings("/run/notify", "1", nullptr, kOwn).watchdog,
            std::chrono::microseconds(1));
}

TEST(NotifySettingsTest, AWatchdogOfAnotherProcessOrWithoutANumberIsLeftOut) {
  EXPECT_FALSE(notify_settings("/s", "90000000", "4712", kOwn).watchdog);
  EXPECT_FALSE(notify_settings("/s", "90000000", "", kOwn).watchdog);
  for (const char* usec : {"", "0", "-1", "9e7", "1000 ", "99999999999999999999"}) {
    EXPECT_FALSE(notify_settings("/s", usec, nullptr, kOwn).watchdog) << usec;
  }
  EXPECT_FALSE(notify_settings("/s", nullptr, nullptr, kOwn).watchdog);
}

TEST(NotifySettingsTest, TheyAreTakenOutOfTheEnvironment) {
  setenv("NOTIFY_SOCKET", "/run/notify", 1);
  setenv("WATCHDOG_USEC", "2000000", 1);
  setenv("WATCHDOG_PID", std::to_string(getpid()).c_str(), 1);
  EXPECT_EQ(take_notify_settings().watchdog, std::chrono::seconds(2));
  EXPECT_EQ(take_notify_settings().socket, "");
  EXPECT_EQ(std::getenv("WATCHDOG_USEC"), nullptr);
  EXPECT_EQ(std::getenv("WATCHDOG_PID"), nullptr);
}

TEST(ServiceManagerTest, ReceivesLinesAtAPath) {
  const TempDir directory;
  const OwnedFd manager = listen_at(directory / "notify");
  const auto link = ServiceManager::connect(directory / "notify");
  ASSERT_TRUE(link) << link.error().message;
  ASSERT_TRUE(link->tell("READY=1\nSTATUS=here"));
  EXPECT_EQ(read_from(manager), "READY=1\nSTATUS=here");
}

TEST(ServiceManagerTest, ReceivesLinesAtAnAbstractName) {
  const std::string name = "@antdt-test-" + std::to_string(getpid());
  const OwnedFd manager = listen_at(name);
  const auto link = ServiceManager::connect(name);
  ASSERT_TRUE(link) << link.error().message;
  ASSERT_TRUE(link->tell("WATCHDOG=1"));
  EXPECT_EQ(read_from(manager), "WATCHDOG=1");
}

TEST(ServiceManagerTest, NamesAManagerThatIsNotThere) {
  const TempDir directory;
  for (const std::string& socket :
       {directory / "none", std::string("vsock:2:1"), "/" + std::string(200, 'x')}) {
    const auto link = ServiceManager::connect(socket);
    ASSERT_FALSE(link) << socket;
    EXPECT_THAT(link.error().message, HasSubstr("NOTIFY_SOCKET=" + socket));
  }
}

TEST(ServiceManagerTest, DoesNotWaitForAManagerThatDoesNotRead) {
  const TempDir directory;
  const OwnedFd manager = listen_at(directory / "notify");
  const auto link = ServiceManager::connect(directory / "notify");
  ASSERT_TRUE(link) << link.error().message;
  Status told;
  for (int i = 0; told && i < 100000; ++i) told = link->tell("WATCHDOG=1");
  EXPECT_FALSE(told) << "its queue is full at some time";
  EXPECT_EQ(read_from(manager), "WATCHDOG=1");
  EXPECT_TRUE(link->tell("WATCHDOG=1")) << "there is room again";
}

}  // namespace
}  // namespace antdt
