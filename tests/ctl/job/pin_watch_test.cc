#include "ctl/job/observers/pin_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace antdt::ctl {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

const PinnedDomain kTrains{"east", 100, 40, 2};
const PinnedDomain kDone{"east", 100, 0, 2};
const PinnedDomain kWaits{"west", 50, 30, 0};

MonoTime at(int s) { return MonoTime(seconds(s)); }

TEST(PinWatch, SaysOnceThatADomainWaitsAndWhatToDo) {
  PinWatch watch;
  EXPECT_FALSE(watch.look({kTrains, kWaits}, Epoch{1}, "RUN", at(1)));
  EXPECT_FALSE(watch.look({kTrains, kWaits}, Epoch{1}, "RUN", at(5)));
  const auto text = watch.look({kTrains, kWaits}, Epoch{1}, "RUN", at(6));
  ASSERT_TRUE(text);
  EXPECT_THAT(*text, HasSubstr("epoch 2 waits for domain west: 30 of its 50 records are left"));
  EXPECT_THAT(*text, HasSubstr("antdt stop RUN"));
  EXPECT_FALSE(watch.look({kTrains, kWaits}, Epoch{1}, "RUN", at(60)));
}

TEST(PinWatch, AWorkerThatComesBackInTimeIsNoNews) {
  PinWatch watch;
  EXPECT_FALSE(watch.look({kWaits}, Epoch{0}, "RUN", at(1)));
  EXPECT_FALSE(watch.look({{"west", 50, 30, 1}}, Epoch{0}, "RUN", at(5)));
  EXPECT_FALSE(watch.look({kWaits}, Epoch{0}, "RUN", at(6)));
  EXPECT_FALSE(watch.look({kWaits}, Epoch{0}, "RUN", at(10)));
  EXPECT_TRUE(watch.look({kWaits}, Epoch{0}, "RUN", at(11)));
}

TEST(PinWatch, NoStepsAreExpectedIfAllThatIsLeftWaits) {
  EXPECT_FALSE(all_wait({kTrains, kWaits}));
  EXPECT_TRUE(all_wait({kDone, kWaits}));
  EXPECT_FALSE(all_wait({kDone}));
  EXPECT_FALSE(all_wait({}));
  PinWatch watch;
  EXPECT_FALSE(watch.changes(false));
  EXPECT_TRUE(watch.changes(true));
  EXPECT_FALSE(watch.changes(true));
}

TEST(PinWatch, WorkersWhoseDomainIsDoneWaitForTheOthers) {
  EXPECT_EQ(done_text({kDone, kWaits}, Epoch{0}),
            "the workers of domain east wait for the others: its records of epoch 1 are done");
  EXPECT_EQ(done_text({kTrains, kWaits}, Epoch{0}), "");
  EXPECT_EQ(done_text({kDone}, Epoch{0}), "");
}

}  // namespace
}  // namespace antdt::ctl
