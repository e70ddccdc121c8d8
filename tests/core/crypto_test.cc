// Tests of values that are derived from a secret: proofs, further secrets, sealed pieces.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "core/crypto/seal.h"
#include "core/crypto/secret.h"

namespace antdt::crypto {
namespace {

std::string hex(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte b : bytes) text += fmt::format("{:02x}", static_cast<unsigned>(b));
  return text;
}

TEST(Secret, IsDrawnAnewEachTimeAndComesOverTheWireWhole) {
  const auto one = Secret::random();
  const auto other = Secret::random();
  ASSERT_TRUE(one && other);
  EXPECT_NE(one->for_wire(), other->for_wire());
  const auto heard = Secret::of(one->for_wire());
  ASSERT_TRUE(heard);
  EXPECT_EQ(heard->for_wire(), one->for_wire());
  for (const std::size_t bytes : {0U, 31U, 33U}) {
    const auto none = Secret::of(std::string(bytes, 'x'));
    ASSERT_FALSE(none) << bytes;
    EXPECT_EQ(none.error().kind, ErrorKind::kCorrupt);
  }
}

// RFC 4231 has no key of 32 bytes: this is HMAC-SHA-256 as Python's hmac gives it.
TEST(Secret, ProvesWithHmacSha256) {
  const auto secret = Secret::of("0123456789abcdef0123456789abcdef");
  ASSERT_TRUE(secret);
  EXPECT_EQ(hex(secret->mac("what is said")),
            "9c058b45221d8fde98f7054459efb15e8d28f660c7d9a9a0b76dc53327f58806");
}

TEST(Secret, DerivedOnesAreLikeNothingElse) {
  const auto secret = Secret::random();
  ASSERT_TRUE(secret);
  const std::set<std::string> all{
      secret->for_wire(), secret->derive("a").for_wire(), secret->derive("b").for_wire(),
      secret->derive("a").derive("b").for_wire(), Secret().derive("a").for_wire()};
  EXPECT_EQ(all.size(), 5U);
  EXPECT_EQ(secret->derive("a").for_wire(), secret->derive("a").for_wire());
}

TEST(Mac, IsTheSameOnlyIfEveryByteIs) {
  const Mac mac = Secret().mac("text");
  EXPECT_TRUE(same(mac, Secret().mac("text")));
  for (std::size_t i = 0; i < mac.size(); ++i) {
    Mac other = mac;
    other[i] ^= std::byte{1};
    EXPECT_FALSE(same(mac, other)) << i;
  }
}

TEST(Transcript, KnowsWhereEachPartEnds) {
  const auto text = [](std::string_view a, std::string_view b) {
    return (Transcript("label") << a << b).text();
  };
  EXPECT_NE(text("ab", "c"), text("a", "bc"));
  EXPECT_NE((Transcript("a") << 1 << 2).text(), (Transcript("a") << 2 << 1).text());
}

// ---------------------------------------------------------------------- seals

using Bytes = std::vector<std::byte>;

Bytes bytes_of(std::string_view text) {
  Bytes bytes;
  for (const char c : text) bytes.push_back(static_cast<std::byte>(c));
  return bytes;
}

struct Piece {
  Bytes open, sealed, seal;
};

Piece seal(Sealer& sealer, std::string_view text, std::string_view open = "") {
  const Bytes plain = bytes_of(text);
  Piece piece{bytes_of(open), Bytes(plain.size()), Bytes(kSealBytes)};
  sealer.seal(piece.open, plain, piece.sealed, piece.seal);
  return piece;
}

struct Conversation {
  Sealer sealer{Secret().derive("key")};
  Opener opener{Secret().derive("key")};
  bool opens(Piece piece) { return opener.open(piece.open, piece.sealed, piece.seal); }
};

TEST(Seal, IsOpenedInOrderWithTheKey) {
  Conversation c;
  for (const std::string text : {"one", "two", "", "and a longer one, of more than a block"}) {
    Piece piece = seal(c.sealer, text, "header");
    if (!text.empty()) {
      EXPECT_NE(piece.sealed, bytes_of(text));
    }
    ASSERT_TRUE(c.opener.open(piece.open, piece.sealed, piece.seal)) << text;
    EXPECT_EQ(piece.sealed, bytes_of(text));
  }
  EXPECT_NE(seal(c.sealer, "same").sealed, seal(c.sealer, "same").sealed);
}

TEST(Seal, IsNotOpenedWithAnotherKey) {
  Conversation c;
  Opener other{Secret().derive("another key")};
  Piece piece = seal(c.sealer, "text");
  EXPECT_FALSE(other.open(piece.open, piece.sealed, piece.seal));
}

TEST(Seal, IsNotOpenedWhereAnythingWasChanged) {
  for (int what = 0; what < 3; ++what) {
    Conversation c;
    Piece piece = seal(c.sealer, "text", "open");
    Bytes& part = what == 0 ? piece.open : what == 1 ? piece.sealed : piece.seal;
    part.back() ^= std::byte{1};
    EXPECT_FALSE(c.opens(piece)) << what;
  }
}

TEST(Seal, IsNotOpenedTwiceNorOutOfOrderNorAfterAMissingOne) {
  const auto three = [](Conversation& c) {
    return std::vector<Piece>{seal(c.sealer, "1"), seal(c.sealer, "2"), seal(c.sealer, "3")};
  };
  Conversation repeated;
  auto pieces = three(repeated);
  EXPECT_TRUE(repeated.opens(pieces[0]));
  EXPECT_FALSE(repeated.opens(pieces[0]));
  Conversation swapped;
  pieces = three(swapped);
  EXPECT_FALSE(swapped.opens(pieces[1]));
  Conversation missing;
  pieces = three(missing);
  EXPECT_TRUE(missing.opens(pieces[0]));
  EXPECT_FALSE(missing.opens(pieces[2]));
}

TEST(Seal, IsNotOpenedWhereItWasCutShort) {
  Conversation c;
  Piece piece = seal(c.sealer, "a text");
  piece.sealed.pop_back();
  EXPECT_FALSE(c.opens(piece));
}

}  // namespace
}  // namespace antdt::crypto
