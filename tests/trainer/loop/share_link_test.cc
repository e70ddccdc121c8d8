// Members and their desk over real sockets.
#include "trainer/loop/sharing/share_link.h"

#include <gmock/gmock.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <barrier>
#include <thread>

#include "core/os/net.h"
#include "core/wire/codec.h"
#include "trainer/data/pieces.h"
#include "trainer/loop/sharing/udp.h"
#include "trainer/worker/sharing/share_seat.h"

namespace antdt::trainer {
namespace {

using ::testing::HasSubstr;
using worker::sharing::Asked;
using worker::sharing::ShareSeat;

GroupKey key(const char* text = "secret") {
  return {crypto::Secret().derive(text), "job", Generation{3}};
}

// A way between one member and the desk that loses every third datagram, repeats every fourth, and
// holds every fifth back until the next one has overtaken it; in both directions.
class BadWay {
 public:
  explicit BadWay(const std::string& desk)
      : front_(bind_udp("127.0.0.1", 0).value()), back_(bind_udp("127.0.0.1", 0).value()) {
    EXPECT_TRUE(connect_udp(back_, desk));
    thread_ = std::jthread([this](const std::stop_token& stop) { carry(stop); });
  }
  [[nodiscard]] std::string address() const { return local_address(front_).value(); }
  [[nodiscard]] int lost() const { return lost_; }

 private:
  void carry(const std::stop_token& stop) {
    std::vector<char> buffer(kMostBytes);
    while (!stop.stop_requested()) {
      std::array<pollfd, 2> ready{{{front_.get(), POLLIN, 0}, {back_.get(), POLLIN, 0}}};
      if (poll(ready.data(), ready.size(), 10) <= 0) continue;
      if (ready[0].revents != 0) {
        member_size_ = sizeof(member_);
        const auto bytes = recvfrom(front_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT,
                                    reinterpret_cast<sockaddr*>(&member_), &member_size_);
        if (bytes > 0) pass(std::string(buffer.data(), static_cast<std::size_t>(bytes)), true);
      }
      if (ready[1].revents != 0) {
        const auto bytes = recv(back_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
        if (bytes > 0) pass(std::string(buffer.data(), static_cast<std::size_t>(bytes)), false);
      }
    }
  }
  void pass(std::string datagram, bool to_desk) {
    const int n = ++number_;
    std::string& held = to_desk ? held_to_desk_ : held_to_member_;
    if (n % 3 == 0) {
      ++lost_;
      return;
    }
    if (n % 5 == 0 && held.empty()) return held.swap(datagram);
    send(datagram, to_desk);
    if (n % 4 == 0) send(datagram, to_desk);
    if (!held.empty()) send(std::exchange(held, {}), to_desk);
  }
  void send(const std::string& datagram, bool to_desk) {
    if (to_desk) {
      static_cast<void>(::send(back_.get(), datagram.data(), datagram.size(), 0));
    } else {
      static_cast<void>(sendto(front_.get(), datagram.data(), datagram.size(), 0,
                               reinterpret_cast<const sockaddr*>(&member_), member_size_));
    }
  }

  OwnedFd front_;  // towards the member
  OwnedFd back_;   // towards the desk
  sockaddr_storage member_{};
  socklen_t member_size_ = 0;
  std::string held_to_desk_, held_to_member_;
  int number_ = 0;
  std::atomic<int> lost_ = 0;
  std::jthread thread_;
};

// The links of a group, connected.
std::vector<std::unique_ptr<ShareLink>> links(std::uint32_t size, const ShareLinkOptions& options) {
  std::vector<std::unique_ptr<ShareLink>> all;
  for (std::uint32_t rank = 0; rank < size; ++rank) {
    auto link = ShareLink::open("127.0.0.1", rank, size, key(), options);
    EXPECT_TRUE(link) << link.error().message;
    all.push_back(std::move(*link));
  }
  const auto desk = all.front()->address();
  EXPECT_TRUE(desk);
  for (auto& link : all) EXPECT_TRUE(link->connect(*desk));
  return all;
}

wire::Piece piece(std::uint64_t from, std::uint64_t to) {
  wire::Piece piece;
  piece.shard_records = 100000;
  piece.from = from;
  piece.to = to;
  return piece;
}

// One member's steps: what it computes it counts by the record's number.
void take_part(ShareLink& link, std::uint32_t member, std::uint64_t steps, std::uint32_t part,
               std::vector<std::atomic<int>>& computed, std::vector<std::uint64_t>& own,
               std::barrier<>& sum) {
  ShareSeat seat(member, {});
  for (std::uint64_t step = 1; step <= steps; ++step) {
    const std::uint64_t begin = step * 1000 + member * part;
    const std::vector<wire::Piece> pieces = {piece(begin, begin + 3),
                                             piece(begin + 3, begin + part)};
    link.offer(seat.begin(Step{step}, part, 0), pieces);
    std::vector<wire::Piece> run = data::cut(pieces, 0, seat.first_run().to);
    while (true) {
      std::vector<std::uint64_t> numbers;
      for (const wire::Piece& p : run) data::add_record_numbers(p, numbers);
      for (const std::uint64_t number : numbers) ++computed.at(number);
      own[member] += numbers.size();
      // Member 0 is slow.
      std::this_thread::sleep_for(std::chrono::microseconds(member == 0 ? 2000 : 100) *
                                  static_cast<int>(numbers.size()));
      const auto ask = seat.ready();
      if (!ask) break;
      auto handed = link.ask(*ask);
      EXPECT_TRUE(handed) << (handed ? "" : handed.error().message);
      if (!handed || !seat.hear(handed->answer)) return sum.arrive_and_drop();
      run = std::move(handed->records);
    }
    sum.arrive_and_wait();  // in place of the sum: no member begins the next step before it
  }
}

constexpr std::uint32_t kMembers = 3;
constexpr std::uint32_t kPart = 24;
constexpr std::uint64_t kSteps = 8;

// Returns how many records each member computed.
std::vector<std::uint64_t> expect_each_record_once(
    const std::vector<std::unique_ptr<ShareLink>>& all) {
  std::vector<std::atomic<int>> computed(1000 * (kSteps + 1));
  std::vector<std::uint64_t> own(kMembers);
  std::barrier sum(kMembers);
  {
    std::vector<std::jthread> threads;
    for (std::uint32_t member = 0; member < kMembers; ++member) {
      threads.emplace_back(
          [&, member] { take_part(*all[member], member, kSteps, kPart, computed, own, sum); });
    }
  }
  for (std::uint64_t step = 1; step <= kSteps; ++step) {
    for (std::uint64_t i = 0; i < 1000; ++i) {
      EXPECT_EQ(computed[step * 1000 + i], i < kMembers * kPart ? 1 : 0) << step << ", " << i;
    }
  }
  return own;
}

TEST(ShareLinkTest, EachRecordIsComputedOnceAndASlowMemberIsHelped) {
  const auto own = expect_each_record_once(links(kMembers, {}));
  EXPECT_LT(own[0], kSteps * kPart);
  EXPECT_GT(own[1] + own[2], 2 * kSteps * kPart);
}

TEST(ShareLinkTest, LostRepeatedAndLateDatagramsChangeNothing) {
  std::vector<std::unique_ptr<ShareLink>> all;
  std::vector<std::unique_ptr<BadWay>> ways;
  for (std::uint32_t rank = 0; rank < kMembers; ++rank) {
    auto link = ShareLink::open("127.0.0.1", rank, kMembers, key(), {});
    ASSERT_TRUE(link) << link.error().message;
    all.push_back(std::move(*link));
    if (rank == 0) continue;
    ways.push_back(std::make_unique<BadWay>(all[0]->address().value()));
    ASSERT_TRUE(all[rank]->connect(ways.back()->address()));
  }
  expect_each_record_once(all);
  for (const auto& way : ways) EXPECT_GT(way->lost(), 0);
}

TEST(ShareLinkTest, ADeskThatDoesNotAnswerIsNamed) {
  const OwnedFd silent = bind_udp("127.0.0.1", 0).value();
  ShareLinkOptions impatient;
  impatient.connect_timeout = std::chrono::milliseconds(50);
  const auto link = ShareLink::open("127.0.0.1", 1, 2, key(), impatient);
  ASSERT_TRUE(link);
  const std::string address = local_address(silent).value();
  const Status met = (*link)->connect(address);
  ASSERT_FALSE(met);
  EXPECT_THAT(met.error().message, HasSubstr(address));
}

TEST(ShareLinkTest, AnAskThatWaitsEndsWithTheGeneration) {
  const auto all = links(2, {});
  for (const std::uint32_t member : {0U, 1U}) {
    const Asked ask{{member, Step{1}, 0, 0, 0}, 1};  // the other has offered nothing yet
    std::jthread ends([&] { all[member]->abort(); });
    const auto handed = all[member]->ask(ask);
    ASSERT_FALSE(handed);
    EXPECT_EQ(handed.error().kind, ErrorKind::kAborted);
  }
}

TEST(ShareLinkTest, WhoDoesNotKnowTheSecretIsNotHeard) {
  const auto all = links(2, {});
  ShareLinkOptions impatient;
  impatient.connect_timeout = std::chrono::milliseconds(50);
  const auto stranger = ShareLink::open("127.0.0.1", 1, 2, key("another"), impatient);
  ASSERT_TRUE(stranger);
  const Status met = (*stranger)->connect(*all[0]->address());
  ASSERT_FALSE(met);
  EXPECT_EQ(met.error().kind, ErrorKind::kUnreachable);
  EXPECT_THAT(met.error().message, HasSubstr("allow UDP between the hosts"));
  // The stranger offers records in member 1's name; then member 1 offers its own.
  (*stranger)->offer({1, Step{1}, 50, 0, 0}, {piece(500, 550)});
  all[1]->offer({1, Step{1}, 4, 4, 0}, {piece(0, 4)});
  const auto handed = all[0]->ask({{0, Step{1}, 0, 0, 0}, 1});
  ASSERT_TRUE(handed);
  EXPECT_FALSE(handed->answer.run) << "of the four records none is left";
}

TEST(ShareMessagesTest, OnlyTheSameKeyOpensADatagram) {
  const ShareKeys keys = share_keys(crypto::Secret().derive("a"), 0);
  const std::string datagram = sealed(keys.to_desk, "body");
  EXPECT_EQ(opened(keys.to_desk, datagram), "body");
  EXPECT_EQ(opened(keys.from_desk, datagram), "");
  EXPECT_EQ(opened(share_keys(crypto::Secret().derive("a"), 32).to_desk, datagram), "");
  EXPECT_EQ(opened(share_keys(crypto::Secret().derive("b"), 0).to_desk, datagram), "");
  std::string changed = datagram;
  changed.back() = 'Y';
  EXPECT_EQ(opened(keys.to_desk, changed), "");
  EXPECT_EQ(opened(keys.to_desk, datagram.substr(0, 20)), "");
}

ToDesk offer_of(std::uint32_t records) {
  ToDesk message;
  message.member = 1;
  message.records = records;
  message.most = 8;
  message.part = {piece(100, 100 + records)};
  return message;
}

TEST(ShareMessagesTest, NumbersThatDoNotAgreeWithTheRecordsMakeNoSense) {
  EXPECT_TRUE(offer_of(20).is_sound());
  EXPECT_TRUE(offer_of(0).is_sound());
  const auto changed = [](auto message, const auto& change) {
    change(message);
    return message;
  };
  EXPECT_FALSE(changed(offer_of(20), [](ToDesk& m) { m.records = 21; }).is_sound());
  EXPECT_FALSE(changed(offer_of(20), [](ToDesk& m) { m.first = 21; }).is_sound());
  EXPECT_FALSE(changed(offer_of(20), [](ToDesk& m) { m.part[0].from = 200; }).is_sound());
  EXPECT_FALSE(changed(offer_of(20), [](ToDesk& m) { m.part[0].shard_records = 110; }).is_sound());

  FromDesk answer;
  answer.member = 1;
  answer.owner = 0;
  answer.from = 30;
  answer.to = 38;
  answer.run = {piece(130, 138)};
  EXPECT_TRUE(answer.is_sound(offer_of(20)));
  EXPECT_TRUE(FromDesk{}.is_sound(offer_of(20))) << "nothing is left";
  EXPECT_FALSE(changed(answer, [](FromDesk& m) { m.to = 37; }).is_sound(offer_of(20)));
  EXPECT_FALSE(changed(answer, [](FromDesk& m) { m.from = 39; }).is_sound(offer_of(20)));
  EXPECT_FALSE(changed(answer, [](FromDesk& m) { m.owner = 1; }).is_sound(offer_of(20)))
      << "it has no such records";
  const auto larger = [](FromDesk& m) { m.to = 39, m.run[0].to = 139; };
  EXPECT_FALSE(changed(answer, larger).is_sound(offer_of(20))) << "larger than it can compute";
}

TEST(ShareMessagesTest, TheLargestMessageFitsADatagram) {
  constexpr std::uint64_t kMost = ~std::uint64_t{0};
  ToDesk message = offer_of(0);
  message.step = Step{kMost};
  message.records = message.first = message.most = message.number = ~std::uint32_t{0};
  message.part.assign(kMostPieces, {kMost, kMost, kMost, kMost, kMost, kMost, true});
  const std::string datagram =
      sealed(share_keys(crypto::Secret().derive("a"), 0).to_desk, wire::encode(message));
  EXPECT_LE(datagram.size(), kMostBytes);
}

TEST(PiecesTest, PiecesThatFollowOneAnotherBecomeOne) {
  std::vector<wire::Piece> pieces;
  data::add_piece(piece(10, 13), pieces);
  data::add_piece(piece(13, 20), pieces);
  data::add_piece(piece(21, 22), pieces);
  wire::Piece other = piece(22, 23);
  other.shard = 7;
  data::add_piece(other, pieces);
  ASSERT_EQ(pieces.size(), 3U);
  EXPECT_EQ(pieces[0].to, 20U);
}

TEST(PiecesTest, APartOfAListOfPiecesHasItsRecordsInTheirOrder) {
  const std::vector<wire::Piece> pieces = {piece(10, 13), piece(50, 60), piece(5, 6)};
  const auto numbers = [](const std::vector<wire::Piece>& of) {
    std::vector<std::uint64_t> all;
    for (const wire::Piece& p : of) data::add_record_numbers(p, all);
    return all;
  };
  EXPECT_EQ(numbers(data::cut(pieces, 2, 5)), (std::vector<std::uint64_t>{12, 50, 51}));
  EXPECT_EQ(numbers(data::cut(pieces, 13, 14)), (std::vector<std::uint64_t>{5}));
  EXPECT_EQ(numbers(data::cut(pieces, 0, 14)), numbers(pieces));
  EXPECT_TRUE(data::cut(pieces, 7, 7).empty());
}

}  // namespace
}  // namespace antdt::trainer
