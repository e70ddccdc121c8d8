// Tests of the traffic between members under cluster.encrypt, and of attacks on the way.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cstring>
#include <future>
#include <numeric>
#include <string>

#include "tests/trainer/collective/patterns.h"
#include "tests/trainer/collective/testing.h"
#include "trainer/collective/tcp/tcp_link.h"

namespace antdt::trainer {
namespace {

CollectiveOptions encrypting(std::uint32_t /*rank*/) {
  return {.hostname = "127.0.0.1", .interface = "", .encrypt = true};
}

TEST(EncryptedCollective, SumsGathersAndPassesOnAsAPlainOneDoes) {
  for (const std::uint32_t size : {2U, 3U, 5U}) {
    auto group = connect_all(size, encrypting);
    in_threads(size, [&](std::uint32_t rank) {
      Collective& ring = *group[rank];
      for (const std::size_t count : {1UL, 1023UL, 16'384UL, 700'001UL}) {
        std::vector<float> values(count, static_cast<float>(rank + 1));
        const Status status = ring.allreduce_sum(values);
        ASSERT_TRUE(status) << status.error().message;
        const float sum = static_cast<float>(size * (size + 1)) / 2;
        EXPECT_TRUE(repeats<float>(values, std::vector<float>(1024, sum))) << count;
        std::vector<std::uint32_t> all(size);
        ASSERT_TRUE(ring.allgather(std::as_bytes(std::span(&rank, 1)),
                                   std::as_writable_bytes(std::span(all))));
        EXPECT_EQ(all.back(), size - 1);
      }
      std::vector<std::byte> state(300'000, std::byte{7});
      if (rank == 0) {
        ASSERT_TRUE(ring.send_right(state));
      } else if (rank == 1) {
        std::vector<std::byte> got(state.size());
        ASSERT_TRUE(ring.receive_left(got));
        EXPECT_EQ(got, state);
      }
    });
  }
}

TEST(EncryptedCollective, AnAbortReleasesMembersThatWaitAndMembersThatSend) {
  auto group = connect_all(2, encrypting);
  std::vector<float> values(4'000'000, 1);
  std::promise<void> entered;
  auto alone = std::async(std::launch::async, [&] {
    entered.set_value();
    return group[0]->allreduce_sum(values);  // the other does not come
  });
  entered.get_future().wait();
  group[0]->abort();
  const Status status = alone.get();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().kind, ErrorKind::kAborted);
  std::vector<float> more(4'000'000, 1);
  const Status broken = group[1]->allreduce_sum(more);
  ASSERT_FALSE(broken) << "the other end has gone";
  EXPECT_EQ(broken.error().kind, ErrorKind::kIo);
}

TEST(EncryptedCollective, AMemberThatDoesNotEncryptIsRefused) {
  std::vector<std::unique_ptr<CollectiveBuilder>> builders;
  builders.push_back(prepare(0, 2, encrypting(0)));
  builders.push_back(prepare(1, 2));
  std::vector<std::string> why(2);
  in_threads(2, [&](std::uint32_t rank) {
    const auto group = connect(builders, rank);
    ASSERT_FALSE(group);
    why[rank] = group.error().message;
    for (const auto& builder : builders) builder->abort();
  });
  EXPECT_THAT(why[0], testing::HasSubstr("encrypt"));
}

// ------------------------------------------------- somebody between the two

struct Ends {
  OwnedFd one, other;
};
Ends socket_pair() {
  int fds[2];
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
  return {OwnedFd(fds[0]), OwnedFd(fds[1])};
}

// Two links, between which the test sees the first one's bytes before the second receives them.
class Between {
 public:
  Between() {
    Ends left = socket_pair();
    Ends right = socket_pair();
    const crypto::Secret there = crypto::Secret().derive("there");
    const crypto::Secret back = crypto::Secret().derive("back");
    const LinkKeys one{there, back};
    const LinkKeys other{back, there};
    sender.emplace(1, std::move(left.one), &one);
    receiver.emplace(0, std::move(right.one), &other);
    from_sender_ = std::move(left.other);
    to_receiver_ = std::move(right.other);
  }
  std::string takes(std::string_view message) {
    sender->queue(std::as_bytes(std::span(message)));
    EXPECT_TRUE(sender->write());
    EXPECT_FALSE(sender->waits_to_write());
    std::string taken(1 << 20, '\0');
    const ssize_t n = recv(from_sender_.get(), taken.data(), taken.size(), MSG_DONTWAIT);
    taken.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
    return taken;
  }
  void gives(std::string_view bytes) {
    EXPECT_EQ(::send(to_receiver_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  void hangs_up() { to_receiver_.close(); }
  // Returns the result of receiving this many bytes: the text, "" while more is expected, or the
  // error.
  std::string receives(std::size_t bytes) {
    std::string text(bytes, '?');
    receiver->expect(std::as_writable_bytes(std::span(text)));
    auto whole = receiver->read();
    if (!whole) return whole.error().message;
    return *whole ? text : "";
  }

  std::optional<TcpLink> sender, receiver;

 private:
  OwnedFd from_sender_, to_receiver_;
};

const std::string kText = "the gradients of this step, which are nobody's business";

TEST(SealedLink, ShowsNothingOfWhatItCarriesAndCarriesItWhole) {
  Between between;
  for (const std::size_t bytes : {std::size_t{1}, kText.size(), std::size_t{150'000}}) {
    std::string message;
    while (message.size() < bytes) message += kText;
    message.resize(bytes);
    const std::string taken = between.takes(message);
    EXPECT_GT(taken.size(), message.size());
    if (bytes > 8) {
      EXPECT_EQ(taken.find(message.substr(0, 8)), std::string::npos);
    }
    between.gives(taken);
    EXPECT_EQ(between.receives(bytes), message);
  }
}

TEST(SealedLink, AMessageMayComeByteAfterByte) {
  Between between;
  const std::string taken = between.takes(kText);
  std::string text(kText.size(), '?');
  between.receiver->expect(std::as_writable_bytes(std::span(text)));
  for (std::size_t i = 0; i < taken.size(); ++i) {
    const auto before = between.receiver->read();
    ASSERT_TRUE(before && !*before) << i;
    between.gives(taken.substr(i, 1));
  }
  const auto whole = between.receiver->read();
  ASSERT_TRUE(whole && *whole);
  EXPECT_EQ(text, kText);
}

TEST(SealedLink, AnEmptyMessageIsOneToo) {
  Between between;
  between.gives(between.takes(""));
  std::string nothing;
  between.receiver->expect(std::as_writable_bytes(std::span(nothing)));
  const auto whole = between.receiver->read();
  EXPECT_TRUE(whole && *whole);
  between.gives(between.takes(kText));
  EXPECT_EQ(between.receives(kText.size()), kText);
}

TEST(SealedLink, AnyByteThatIsChangedEndsIt) {
  const std::size_t all = Between().takes(kText).size();
  for (std::size_t i = 0; i < all; ++i) {
    Between between;
    std::string taken = between.takes(kText);
    taken[i] = static_cast<char>(taken[i] ^ 4);
    between.gives(taken);
    EXPECT_THAT(between.receives(kText.size()),
                testing::AnyOf(testing::HasSubstr("changed"), testing::HasSubstr("were due")))
        << "byte " << i;
  }
}

TEST(SealedLink, AMessageThatIsRepeatedOrLeftOutEndsIt) {
  Between repeated;
  const std::string first = repeated.takes(kText);
  repeated.gives(first);
  ASSERT_EQ(repeated.receives(kText.size()), kText);
  std::string again = first;
  again[8] = 1;  // Header::number, which is readable
  repeated.gives(again);
  EXPECT_THAT(repeated.receives(kText.size()), testing::HasSubstr("repeated"));
  Between missing;
  std::ignore = missing.takes(kText);
  std::string second = missing.takes(kText);
  second[8] = 0;
  missing.gives(second);
  EXPECT_THAT(missing.receives(kText.size()), testing::HasSubstr("left out"));
}

TEST(SealedLink, PiecesOfAMessageThatAreSwappedEndIt) {
  Between between;
  const std::string message(3 * TcpLink::kPieceBytes, 'x');
  const std::string taken = between.takes(message);
  const std::size_t head = 16 + 16 + TcpLink::kPieceBytes;
  const std::size_t piece = 16 + TcpLink::kPieceBytes;
  ASSERT_EQ(taken.size(), head + 2 * piece);
  between.gives(taken.substr(0, head) + taken.substr(head + piece) + taken.substr(head, piece));
  EXPECT_THAT(between.receives(message.size()), testing::HasSubstr("changed"));
}

TEST(SealedLink, AMessageThatIsCutShortIsNeverWhole) {
  const std::size_t all = Between().takes(kText).size();
  for (const std::size_t kept : {std::size_t{0}, std::size_t{16}, std::size_t{32}, all - 1}) {
    Between between;
    between.gives(between.takes(kText).substr(0, kept));
    between.hangs_up();
    EXPECT_THAT(between.receives(kText.size()), testing::HasSubstr("closed the connection"));
  }
}

TEST(SealedLink, AReflectedPieceEndsTheLink) {
  Between between;
  const std::string taken = between.takes(kText);
  Ends mirror = socket_pair();
  const crypto::Secret there = crypto::Secret().derive("there");
  const crypto::Secret back = crypto::Secret().derive("back");
  const LinkKeys keys{there, back};
  TcpLink sender(1, std::move(mirror.one), &keys);
  ASSERT_EQ(::send(mirror.other.get(), taken.data(), taken.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(taken.size()));
  std::string text(kText.size(), '?');
  sender.expect(std::as_writable_bytes(std::span(text)));
  EXPECT_FALSE(sender.read());
}

}  // namespace
}  // namespace antdt::trainer
