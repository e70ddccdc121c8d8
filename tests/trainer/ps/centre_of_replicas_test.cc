// A table whose rows follow the mean of workers' replicas (trainer.sync = "shadow-ma" and
// "shadow-bmuf") on a server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>

#include "trainer/ps/rows/rows.h"
#include "trainer/ps/rows/slice_image.h"
#include "trainer/ps/server.h"

namespace antdt::ps::centre_of_replicas_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Member w(std::uint32_t index) { return {WorkerId{'w', index}, Attempt{1}}; }

// A server with an embedding table "t" and the centre of replicas "dense", of two rows.
struct Averaging {
  explicit Averaging(double eta = 1) : server(std::make_unique<Server>(Consistency::kUnbounded)) {
    server->add_workers({w(0), w(1), w(2)});
    says(w(0), tables(eta));
  }
  static wire::PsOpen tables(double eta) {
    return {7, {{"t", 1, "sum", 0, 0, 0, "zero", 0}, {"dense", 1, "mean", eta, 0, 0, "zero", 0}}};
  }
  template <class M>
  std::vector<ReplyTo> says(Member member, const M& m) {
    std::vector<ReplyTo> replies;
    server->on({"peer", member, 1}, m, replies);
    return replies;
  }
  static wire::PsRows replica(const std::vector<float>& values,
                              const std::vector<std::uint64_t>& keys = {0, 1}) {
    return {1, to_bytes(keys), to_bytes(values)};
  }
  std::string refusal(Member member, const wire::PsRows& rows) {
    const auto replies = says(member, wire::PsPush{++numbers[member], 0, {rows}});
    const auto* refused = std::get_if<wire::Refused>(&replies.at(0).body);
    return refused == nullptr ? "none" : refused->reason;
  }
  void stage(Member member, const std::vector<float>& values) {
    wire::PsRows gradient{0, to_bytes(std::vector<std::uint64_t>{5}),
                          to_bytes(std::vector<float>{1})};
    says(member, wire::PsPush{++numbers[member], 0, {gradient, replica(values)}});
  }
  void decide(Member member, const std::vector<wire::PsMember>& left = {}) {
    std::vector<ReplyTo> replies;
    server->apply(0,
                  {++decisions, 1, {{member.worker, member.attempt, numbers[member]}}, left, 0, ""},
                  replies);
  }
  void exchange(Member member, const std::vector<float>& values) {
    stage(member, values);
    decide(member);
  }
  void leave(Member member) {
    std::vector<ReplyTo> replies;
    server->apply(0, {++decisions, 0, {}, {{member.worker, member.attempt}}, 0, ""}, replies);
  }
  std::vector<float> pull(std::uint32_t table, const std::vector<std::uint64_t>& keys) {
    const auto replies = says(w(1), wire::PsPull{0, {{table, to_bytes(keys), ""}}});
    return *floats_from_bytes(std::get<wire::PsPulled>(replies.at(0).body).values.at(0),
                              keys.size());
  }
  std::vector<float> centre() { return pull(1, {0, 1}); }

  std::unique_ptr<Server> server;
  std::uint64_t decisions = 0;
  std::map<Member, std::uint64_t> numbers;
};

TEST(CentreOfReplicas, UnderMaItIsTheirMeanOnceAnExchangeIsDecided) {
  Averaging a;
  a.exchange(w(0), {2, 4});
  EXPECT_THAT(a.centre(), ElementsAre(2, 4));
  a.stage(w(1), {4, 0});
  EXPECT_THAT(a.centre(), ElementsAre(2, 4)) << "a push that is staged";
  a.decide(w(1));
  EXPECT_THAT(a.centre(), ElementsAre(3, 2));
  a.exchange(w(1), {6, 0});
  EXPECT_THAT(a.centre(), ElementsAre(4, 2)) << "its newest replica counts, and not both";
  EXPECT_THAT(a.pull(0, {5}), ElementsAre(3)) << "each push of embedding rows counts once";
}

TEST(CentreOfReplicas, UnderBmufItTakesItsShareOfTheWayFromWhereItIs) {
  Averaging a(0.25);
  a.exchange(w(0), {8, 0});
  EXPECT_THAT(a.centre(), ElementsAre(2, 0));
  a.exchange(w(1), {0, 16});  // the mean is 4, 8
  EXPECT_THAT(a.centre(), ElementsAre(2.5F, 2));
  a.server->set_rate(0.1);
  a.exchange(w(1), {0, 16});
  EXPECT_THAT(a.centre(), ElementsAre(2.875F, 3.5F))
      << "the factor of the learning rate is for gradients";
}

TEST(CentreOfReplicas, WhoHasLeftIsInNoMeanFromTheNextExchangeOn) {
  Averaging a;
  a.exchange(w(0), {2, 4});
  a.exchange(w(1), {4, 0});
  a.leave(w(0));
  EXPECT_THAT(a.centre(), ElementsAre(3, 2)) << "what it taught the others is not taken back";
  a.exchange(w(1), {4, 0});
  EXPECT_THAT(a.centre(), ElementsAre(4, 0));
  a.stage(w(2), {6, 6});
  a.decide(w(2), {{w(2).worker, w(2).attempt}});
  EXPECT_THAT(a.centre(), ElementsAre(5, 3)) << "an exchange that is decided as it leaves counts";
  a.exchange(w(1), {1, 1});
  EXPECT_EQ(a.server->mean_of(1)->mean(), (std::vector<float>{1, 1}));
}

TEST(CentreOfReplicas, ReplicasOfOtherRowsAreRefusedAndChangeNothing) {
  Averaging a;
  a.exchange(w(0), {2, 4});
  EXPECT_THAT(a.refusal(w(1), Averaging::replica({1}, {0})),
              HasSubstr("a replica with 1 rows of table 'dense', where that of another worker has "
                        "2"));
  EXPECT_THAT(a.refusal(w(1), Averaging::replica({1, 1}, {0, 7})), HasSubstr("'dense'"));
  EXPECT_THAT(a.centre(), ElementsAre(2, 4));
}

TEST(CentreOfReplicas, AShareThatIsNoneIsRefused) {
  for (const double eta : {0.0, -0.5, 1.5}) {
    Server server(Consistency::kUnbounded);
    server.add_workers({w(0)});
    std::vector<ReplyTo> replies;
    server.on({"peer", w(0), 1}, Averaging::tables(eta), replies);
    EXPECT_THAT(std::get<wire::Refused>(replies.at(0).body).reason,
                HasSubstr("above 0 and at most 1"));
  }
}

TEST(CentreOfReplicas, ANextGroupGoesOnFromTheCentreAndKnowsNoReplica) {
  Averaging a;
  a.exchange(w(0), {2, 4});
  a.exchange(w(1), {4, 0});
  Averaging next;
  next.server = std::make_unique<Server>(Consistency::kUnbounded);
  next.server->add_workers({w(0), w(1), w(2)});
  next.server->adopt(*a.server->release());
  EXPECT_EQ(a.server->mean_of(1), nullptr);
  EXPECT_THAT(next.centre(), ElementsAre(3, 2));
  next.exchange(w(1), {5, 5});
  EXPECT_THAT(next.centre(), ElementsAre(5, 5));
}

// A process that joins as the backup gets the state and the rows as they are, pushes that are
// staged among them.
std::unique_ptr<Server> copy_of(const Server& server) {
  auto copy = std::make_unique<Server>(Consistency::kUnbounded);
  const Status restored = copy->restore(server.image(), 1);
  EXPECT_TRUE(restored) << restored.error().message;
  for (std::uint32_t slice = 0; slice < kSlices; ++slice) {
    std::string bytes;
    encode_slice(*server.store(), slice, [&](std::string_view piece) { bytes += piece; });
    EXPECT_TRUE(decode_slice(*copy->store(), slice, bytes));
  }
  return copy;
}

TEST(CentreOfReplicas, AgreesWithAPlainComputationAndGoesOnInACopyToTheLastBit) {
  for (const double eta : {1.0, 0.3}) {
    std::mt19937 random(11);
    std::normal_distribution<float> some(0, 1);
    Averaging a(eta), b(eta);
    std::map<Member, std::vector<float>> replicas;
    std::vector<double> centre{0, 0};
    for (int i = 0; i < 300; ++i) {
      const Member worker = w(random() % 3);
      const std::vector<float> values{some(random), some(random)};
      a.stage(worker, values);
      b.stage(worker, values);
      if (i % 50 == 7) b.server = copy_of(*b.server);
      a.decide(worker);
      b.decide(worker);
      replicas[worker] = values;
      for (std::size_t k = 0; k < 2; ++k) {
        double sum = 0;
        for (const auto& [member, replica] : replicas) sum += replica[k];
        centre[k] += eta * (sum / static_cast<double>(replicas.size()) - centre[k]);
        ASSERT_NEAR(a.centre()[k], centre[k], 1e-5) << "after " << i;
      }
      ASSERT_EQ(a.centre(), b.centre()) << "after " << i;
    }
  }
}

TEST(CentreOfReplicas, AnImageWhoseMeanHasNoTableIsRefused) {
  Averaging a;
  a.exchange(w(0), {2, 4});
  ServerImage image = a.server->image();
  image.means.at(0).table = 2;
  const Status restored = Server(Consistency::kUnbounded).restore(image, 1);
  ASSERT_FALSE(restored);
  EXPECT_THAT(restored.error().message, HasSubstr("a mean without its table"));
}

}  // namespace
}  // namespace antdt::ps::centre_of_replicas_test
