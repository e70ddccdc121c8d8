#include "shard_server/ledger/record_codec.h"

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <variant>

namespace antdt::shard_server {
namespace {

const Member kW300{{'w', 300}, Attempt{2}};

ledger::FetchAnswered answered() {
  ledger::FetchAnswered record{kW300, 7, 1ULL << 40, AnswerStatus::kGranted, 20, {}, {}};
  record.granted = {{{5, 10}, 1}, {{1ULL << 50, (1ULL << 50) + 64}, 0}};
  record.partials.emplace_back();
  record.partials[0].loss_sum = -1.25;
  record.partials[0].bins = {3, 16383};
  record.partials[0].negatives = record.partials[0].positives = {1, 1ULL << 63};
  return record;
}

TEST(RecordCodecTest, AFetchComesBackAsItWas) {
  const auto decoded = decode_record(encode_record(answered()));
  ASSERT_TRUE(decoded) << decoded.error().message;
  const auto& record = std::get<ledger::FetchAnswered>(*decoded);
  EXPECT_EQ(record.member, kW300);
  EXPECT_EQ(record.seq, 7U);
  EXPECT_EQ(record.place, 1ULL << 40);
  EXPECT_EQ(record.status, AnswerStatus::kGranted);
  EXPECT_EQ(record.granted, answered().granted);
  EXPECT_EQ(record.partials.at(0).loss_sum, -1.25);
  EXPECT_EQ(record.partials.at(0).positives, answered().partials[0].positives);
}

TEST(RecordCodecTest, AGenerationComesBackAsItWas) {
  const ledger::GenerationSettled settled{
      Generation{4}, {{kW300, 99, true}}, {kW300, {{'w', 1}, {}}}};
  const auto decoded = decode_record(encode_record(settled));
  ASSERT_TRUE(decoded) << decoded.error().message;
  const auto& record = std::get<ledger::GenerationSettled>(*decoded);
  EXPECT_EQ(record.generation, settled.generation);
  EXPECT_EQ(record.places, settled.places);
  EXPECT_EQ(record.members, settled.members);
}

TEST(RecordCodecTest, SkippedRecordsComeBackAsTheyWere) {
  const ledger::RecordsSkipped skipped{kW300, {{5, 1ULL << 40, "torn"}, {7, 8, ""}}};
  const auto decoded = decode_record(encode_record(skipped));
  ASSERT_TRUE(decoded) << decoded.error().message;
  const auto& record = std::get<ledger::RecordsSkipped>(*decoded);
  EXPECT_EQ(record.member, kW300);
  EXPECT_EQ(record.records, skipped.records);
}

TEST(RecordCodecTest, AFetchOfOneShardIsAFewBytes) {
  ledger::FetchAnswered record{kW300, 1000, 1'000'000, AnswerStatus::kGranted, 0, {}, {}};
  record.granted = {{{5'000'000, 5'001'024}, 0}};
  EXPECT_LE(encode_record(record).size(), 24U);
}

TEST(RecordCodecTest, BytesCutShortAreAnErrorWhereverTheyAreCut) {
  const std::string bytes = encode_record(answered());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(decode_record(std::string_view(bytes).substr(0, size))) << size;
  }
  EXPECT_FALSE(decode_record(bytes + 'x'));
}

// Sums are behind what every release writes: a record that ends before them is whole.
TEST(RecordCodecTest, NamedSumsAreBehindWhatEarlierReleasesWrite) {
  ledger::FetchAnswered record = answered();
  record.partials.resize(2);
  const std::string older = encode_record(record);
  record.partials[1].named = {{"hits", 3.5}};
  const std::string bytes = encode_record(record);
  EXPECT_TRUE(bytes.starts_with(older));
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(decode_record(std::string_view(bytes).substr(0, size)).has_value(),
              size == older.size())
        << size;
  }
  const auto decoded = decode_record(bytes);
  ASSERT_TRUE(decoded);
  const auto& partials = std::get<ledger::FetchAnswered>(*decoded).partials;
  EXPECT_TRUE(partials[0].named.empty());
  EXPECT_EQ(partials[1].named, record.partials[1].named);
}

TEST(RecordCodecTest, AKindOfANewerReleaseIsNamed) {
  const auto decoded = decode_record("\x63");
  ASSERT_FALSE(decoded);
  EXPECT_NE(decoded.error().message.find("newer release"), std::string::npos);
}

TEST(RecordCodecTest, RandomBytesNeverDoHarm) {
  constexpr std::size_t kKinds = std::variant_size_v<ledger::Record>;
  std::mt19937 random(12);
  std::array<int, kKinds + 2> refused{};  // by kind; the first and the last are of no record
  std::array<int, kKinds + 2> read{};
  for (int round = 0; round < 200'000; ++round) {
    std::string bytes(1 + random() % 40, '\0');
    // Half of the bytes are small, because lengths and enumerations are then more often valid.
    for (char& byte : bytes) byte = static_cast<char>(random() % 2 == 0 ? random() : random() % 4);
    const std::size_t kind = random() % read.size();
    bytes[0] = static_cast<char>(kind);
    const auto decoded = decode_record(bytes);
    ++(decoded ? read : refused)[kind];
    if (!decoded) continue;
    ASSERT_EQ(decoded->index() + 1, kind) << "it is read as a record of another kind";
  }
  for (std::size_t kind = 0; kind < read.size(); ++kind) {
    const bool is_one = kind > 0 && kind <= kKinds;
    EXPECT_EQ(read[kind] > 0, is_one) << "kind " << kind;
    EXPECT_GT(refused[kind], 0) << "kind " << kind;
  }
}

}  // namespace
}  // namespace antdt::shard_server
