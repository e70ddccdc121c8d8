// Messages of significant updates: what is in them, what becomes of both arrays, and what is
// refused.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "trainer/sync/gaia/update.h"

namespace antdt::sync::gaia {
namespace {

using Bytes = std::vector<std::byte>;

struct Arrays {
  std::vector<float> values, known;
};
// Of `significant` elements in a thousand the value has moved by a tenth, of the others by a
// thousandth.
Arrays arrays(std::size_t elements, std::uint32_t significant, std::uint64_t seed = 1) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  Arrays made;
  for (std::size_t i = 0; i < elements; ++i) {
    made.known.push_back(normal(random));
    const float moved = random() % 1000 < significant ? 0.1F : 0.001F;
    made.values.push_back(made.known[i] * (1 + moved));
  }
  return made;
}
Bytes encoded(Arrays& arrays, float threshold, bool whole = false) {
  Encoder encoder;
  Bytes out;
  (void)encoder.encode({3, 7, whole}, 0, arrays.values, arrays.known, threshold, out);
  return out;
}
std::string error_of(const Bytes& bytes, std::uint64_t elements) {
  const auto message = read_message(bytes, 0, elements);
  return message ? "" : message.error().message;
}
template <class T>
void put_at(Bytes& bytes, std::size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

TEST(GaiaUpdate, AnElementIsSentIfItsUpdateIsLargeRelativeToItsValue) {
  // relative changes: 2%, 1% and a bit less, of a value 0, none, of a negative value
  Arrays a{{1.02F, 1.009F, 1e-9F, 5, -2.1F}, {1, 1, 0, 5, -2}};
  const Bytes bytes = encoded(a, 0.01F);
  EXPECT_EQ(a.known, (std::vector<float>{1.02F, 1, 1e-9F, 5, -2.1F}));
  const auto message = read_message(bytes, 0, 5);
  ASSERT_TRUE(message);
  EXPECT_EQ(message->changed, 3U);
  EXPECT_EQ(message->stamp.domain, 3U);
  EXPECT_EQ(message->stamp.clock, 7U);
  EXPECT_FALSE(message->stamp.whole);
  Arrays other{{1, 1, 0, 5, -2}, {1, 1, 0, 5, -2}};
  apply(*message, Direction::kAdd, other.values, other.known);
  EXPECT_NEAR(other.values[0], 1.02, 1e-6);
  EXPECT_EQ(other.values[1], 1);
  EXPECT_EQ(other.values[2], 1e-9F);
  EXPECT_NEAR(other.values[4], -2.1, 1e-6);
  EXPECT_EQ(other.values, other.known);  // what was received is no update of one's own
}

TEST(GaiaUpdate, SmallUpdatesAreSentOnceTheyAddUp) {
  Arrays a{{1}, {1}};
  int sent = 0;
  for (int step = 1; step <= 30; ++step) {
    a.values[0] += 0.003F;
    sent += read_message(encoded(a, 0.01F), 0, 1)->changed == 1 ? 1 : 0;
  }
  EXPECT_EQ(sent, 7);  // four steps each
  EXPECT_NEAR(a.known[0], 1 + 28 * 0.003, 1e-5);
}

// Sparse, as a bitmap, dense; in one chunk, at its end, in several.
TEST(GaiaUpdate, EveryFormIsReadAsItWasWritten) {
  for (const std::size_t elements :
       {1UL, 7UL, 1000UL, kChunk - 1, kChunk, kChunk + 1, 3 * kChunk}) {
    for (const std::uint32_t significant : {0U, 5U, 100U, 900U, 1000U}) {
      Arrays sender = arrays(elements, significant);
      Arrays receiver{sender.known, sender.known};
      const std::vector<float> before = sender.known;
      const Bytes bytes = encoded(sender, 0.01F);
      const auto message = read_message(bytes, 0, elements);
      ASSERT_TRUE(message) << message.error().message;
      apply(*message, Direction::kAdd, receiver.values, receiver.known);
      std::size_t moved = 0;
      for (std::size_t i = 0; i < elements; ++i) {
        ASSERT_NEAR(receiver.values[i], sender.known[i], 1e-6F * std::fabs(before[i]) + 1e-9F);
        moved += sender.known[i] != before[i] ? 1 : 0;
      }
      EXPECT_LE(bytes.size(), dense_bytes(elements));
      EXPECT_GE(message->changed, moved);
      apply(*message, Direction::kWithdraw, receiver.values, receiver.known);
      for (std::size_t i = 0; i < elements; ++i) {
        ASSERT_NEAR(receiver.values[i], before[i], 1e-6F * std::fabs(before[i]) + 1e-9F);
      }
    }
  }
}

TEST(GaiaUpdate, TheSmallestFormIsChosen) {
  const auto bytes_of = [](std::uint32_t significant) {
    Arrays a = arrays(kChunk, significant);
    return static_cast<double>(encoded(a, 0.01F).size() - kHeaderBytes - 4);
  };
  EXPECT_EQ(bytes_of(0), 0);
  EXPECT_NEAR(bytes_of(10), kChunk * 0.01 * 6, kChunk * 0.002 * 6);
  EXPECT_NEAR(bytes_of(300), kChunk / 8.0 + kChunk * 0.3 * 4, kChunk * 0.01 * 4);
  EXPECT_EQ(bytes_of(1000), kChunk * 4);
}

TEST(GaiaUpdate, AWholeMessageLeavesNothingPending) {
  Arrays a = arrays(2 * kChunk + 5, 300);
  const auto message = encoded(a, 0.01F, true);
  EXPECT_TRUE(read_message(message, 0, a.values.size())->stamp.whole);
  EXPECT_EQ(a.values, a.known);
}

TEST(GaiaUpdate, TheThresholdShrinksWithTheLearningRate) {
  EXPECT_FLOAT_EQ(threshold_at(0.01, 1), 0.01F);
  EXPECT_FLOAT_EQ(threshold_at(0.01, 0.1), 0.001F);
  EXPECT_EQ(threshold_at(0.01, 0), 0);
}

// Changes that are not numbers are sent, so that they are seen, and refused.
TEST(GaiaUpdate, TrainingThatHasDivergedIsSeen) {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    Arrays a = arrays(1000, 5);
    a.values[500] = bad;
    EXPECT_NE(error_of(encoded(a, 10.0F), 1000).find("has diverged"), std::string::npos);
  }
}

TEST(GaiaUpdate, AMessageForOtherElementsIsRefused) {
  Arrays a = arrays(1000, 5);
  const Bytes bytes = encoded(a, 0.01F);
  EXPECT_EQ(error_of(bytes, 1000), "");
  EXPECT_NE(error_of(bytes, 1001).find("different models"), std::string::npos);
  EXPECT_FALSE(read_message(bytes, 1, 1000));
}

TEST(GaiaUpdate, AMessageThatIsCutOrTooLongIsRefused) {
  for (const std::uint32_t significant : {5U, 300U, 1000U}) {
    Arrays a = arrays(1000, significant);
    Bytes bytes = encoded(a, 0.01F);
    for (std::size_t length = 0; length < bytes.size(); ++length) {
      EXPECT_NE(
          error_of({bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(length)}, 1000), "");
    }
    bytes.push_back({});
    EXPECT_NE(error_of(bytes, 1000).find("1 bytes too many"), std::string::npos);
  }
}

TEST(GaiaUpdate, PlacesOutsideOfAChunkAreRefused) {
  Arrays a{{1, 2, 3, 4, 5, 6, 7, 8, 9}, {1, 2, 3, 4, 5, 6, 7, 8, 1}};
  Bytes indices = encoded(a, 0.01F);
  ASSERT_EQ(error_of(indices, 9), "");
  ASSERT_EQ(indices.size(), kHeaderBytes + 4 + 6);
  put_at<std::uint16_t>(indices, kHeaderBytes + 4, 9);
  EXPECT_NE(error_of(indices, 9).find("out of order"), std::string::npos);

  Arrays b = arrays(1001, 300);
  Bytes bitmap = encoded(b, 0.01F);
  ASSERT_EQ(bitmap[kHeaderBytes], std::byte{1});
  bitmap[kHeaderBytes + 4 + 125] |= std::byte{0x80};  // element 1007
  EXPECT_NE(error_of(bitmap, 1001).find("bits are set"), std::string::npos);
}

TEST(GaiaUpdate, IndicesThatDoNotAscendAreRefused) {
  Arrays a = arrays(1000, 0);
  a.values[10] = a.values[20] = 100;
  Bytes bytes = encoded(a, 0.01F);
  ASSERT_EQ(error_of(bytes, 1000), "");
  put_at<std::uint16_t>(bytes, kHeaderBytes + 4, 20);
  EXPECT_NE(error_of(bytes, 1000).find("out of order"), std::string::npos);
}

// Whatever bytes arrive, they are refused or can be applied.
TEST(GaiaUpdate, BytesThatWereChangedDoNoHarm) {
  std::mt19937_64 random(5);
  int read = 0;
  for (int round = 0; round < 3000; ++round) {
    const std::size_t elements = 1 + random() % 300;
    Arrays a = arrays(elements, random() % 1001, random());
    Bytes bytes = encoded(a, 0.01F);
    for (auto changes = 1 + random() % 3; changes > 0; --changes) {
      bytes[random() % bytes.size()] = static_cast<std::byte>(random());
    }
    const auto message = read_message(bytes, 0, elements);
    if (!message) continue;
    ++read;
    apply(*message, Direction::kAdd, a.values, a.known);
  }
  EXPECT_GT(read, 100);
  EXPECT_LT(read, 2900);
}

}  // namespace
}  // namespace antdt::sync::gaia
