#include "launcher/start/user_unit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace antdt::launcher {
namespace {

using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

UserManager manager_of(const std::string& version) { return {true, true, "alice", version}; }

TEST(DetachedPlaceTest, IsAScopeOfTheUsersManagerWhereLingeringIsOn) {
  const DetachedPlace place = detached_place(manager_of("252.38-1~deb12u1"), "ctr-01M8");
  EXPECT_EQ(place.unit, "antdt-ctr-01M8.scope");
  EXPECT_EQ(place.remark, "");
  EXPECT_THAT(place.launcher,
              ElementsAre("systemd-run", "--user", "--scope", "--quiet", "--collect",
                          "--unit=antdt-ctr-01M8.scope", "--description=AntDT job ctr-01M8", "--"));
}

TEST(DetachedPlaceTest, OutlivesAWorkerThatRunsOutOfMemoryWhereThatIsASetting) {
  const std::string setting = "--property=OOMPolicy=continue";
  EXPECT_THAT(detached_place(manager_of("253"), "j").launcher, Contains(setting));
  EXPECT_THAT(detached_place(manager_of("257.5-2"), "j").launcher, Contains(setting));
  EXPECT_THAT(detached_place(manager_of("252.38"), "j").launcher, Not(Contains(setting)));
}

TEST(DetachedPlaceTest, IsTheSessionWithoutLingeringAndSaysHowToTurnItOn) {
  UserManager manager = manager_of("252");
  manager.is_lingering = false;
  const DetachedPlace place = detached_place(manager, "ctr-01M8");
  EXPECT_EQ(place.unit, "");
  EXPECT_THAT(place.launcher, IsEmpty());
  EXPECT_THAT(place.remark, HasSubstr("loginctl enable-linger alice"));
}

TEST(DetachedPlaceTest, IsTheSessionIfTheManagerDoesNotAnswerAndSaysWhy) {
  UserManager manager = manager_of("");
  manager.version = tl::unexpected<Error>({ErrorKind::kUnreachable, "no medium found"});
  const DetachedPlace place = detached_place(manager, "ctr-01M8");
  EXPECT_THAT(place.launcher, IsEmpty());
  EXPECT_THAT(place.remark, HasSubstr("no medium found"));
}

TEST(DetachedPlaceTest, NeedsNoRemarkWithoutSystemd) {
  const DetachedPlace place = detached_place({false, false, "alice", std::string()}, "ctr-01M8");
  EXPECT_THAT(place.launcher, IsEmpty());
  EXPECT_EQ(place.remark, "");
}

TEST(DetachedPlaceTest, GivesAUnitANameThatItMayHave) {
  EXPECT_EQ(detached_place(manager_of("252"), "a b/c:\xc3\xa9-1").unit, "antdt-a_b_c___-1.scope");
  EXPECT_LE(detached_place(manager_of("252"), std::string(1000, 'x')).unit.size(), 255U);
}

}  // namespace
}  // namespace antdt::launcher
