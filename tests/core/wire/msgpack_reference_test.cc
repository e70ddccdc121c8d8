// Messages as msgpack-c itself reads and writes maps, like a peer that is written with it: each
// reads what the other writes.
#include <gtest/gtest.h>

#include <map>
#include <msgpack.hpp>
#include <string>

#include "core/wire/codec.h"
#include "core/wire/messages.h"

namespace antdt::wire {
namespace {

TEST(MsgpackReferenceTest, ReadsOurMessages) {
  PhaseStart start;
  start.phase = 70000;
  start.what = PhaseKind::kEval;
  start.epoch = Epoch{3};
  start.records = 1ULL << 40;
  const std::string bytes = encode(start);
  const auto handle = msgpack::unpack(bytes.data(), bytes.size());
  const auto map = handle.get().as<std::map<std::string, msgpack::object>>();
  EXPECT_EQ(map.at("phase").as<std::uint64_t>(), 70000U);
  EXPECT_EQ(map.at("what").as<std::string>(), "eval");
  EXPECT_EQ(map.at("epoch").as<std::uint32_t>(), 3U);
  EXPECT_EQ(map.at("records").as<std::uint64_t>(), 1ULL << 40);
}

TEST(MsgpackReferenceTest, WritesWhatWeRead) {
  msgpack::sbuffer buffer;
  msgpack::packer<msgpack::sbuffer> packer(buffer);
  packer.pack_map(3);
  packer.pack(std::string("place"));
  packer.pack(std::uint64_t{123456789});
  packer.pack(std::string("of a newer version"));
  packer.pack(std::map<std::string, std::vector<double>>{{"a", {1.5, -2}}});
  packer.pack(std::string("loss_sum"));
  packer.pack(-0.25);
  const auto progress = decode<Progress>({buffer.data(), buffer.size()});
  ASSERT_TRUE(progress) << progress.error().message;
  EXPECT_EQ(progress->place, 123456789U);
  EXPECT_EQ(progress->loss_sum, -0.25);
}

}  // namespace
}  // namespace antdt::wire
