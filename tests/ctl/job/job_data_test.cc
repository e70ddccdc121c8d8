// A worker's data is compared with the job's original data at every join.
#include <gmock/gmock.h>

#include "ctl/membership/data_identity.h"
#include "tests/ctl/job/job_servers_fixture.h"

namespace antdt::ctl {
namespace {

using std::chrono::seconds;
using testing::AllOf;
using testing::HasSubstr;

// 100 records to train on and 20 to evaluate on, in two files.
wire::DataIdentity data() {
  wire::DataIdentity found;
  found.train_records = 100;
  found.eval_records = 20;
  found.fingerprint = "all";
  found.files = {{"train", "/d/train.tsv", 1000, 100, "aa"},
                 {"eval", "/d/eval.tsv", 200, 20, "bb"}};
  found.built_by = "index builder 2, format criteo";
  return found;
}

wire::DataIdentity with_other_training_file() {
  wire::DataIdentity found = data();
  found.fingerprint = "other";
  found.files[0].fingerprint = "cc";
  return found;
}

wire::DataIdentity with_other_evaluation_file() {
  wire::DataIdentity found = data();
  found.eval_records = 21;
  found.fingerprint = "other";
  found.files[1] = {"eval", "/d/eval.tsv", 210, 21, "dd"};
  return found;
}

// The messages of a job depend on its `sync`, and the rule is the same under each.
class JobDataTest : public JobServersTest, public testing::WithParamInterface<SyncStrategy> {
 protected:
  [[nodiscard]] bool uses_servers() const { return on_servers(GetParam()); }
  [[nodiscard]] JobMachineConfig expecting(const wire::DataIdentity& found = data()) const {
    JobMachineConfig c = uses_servers() ? with_servers() : config();
    c.spec.sync = GetParam();
    c.spec.eval_records = found.eval_records;
    c.data = found;
    return c;
  }
  void saw(const job::Effects& outputs) override {
    JobServersTest::saw(outputs);
    begun += sent<wire::Form>(outputs).size() + sent<wire::PsServe>(outputs).size() +
             sent<wire::PhaseStart>(outputs).size() + sent<wire::Grants>(outputs).size();
  }
  job::Effects joins_with(Member m, const wire::DataIdentity& found) {
    wire::Join j = join();
    j.data = found;
    j.key = "key of " + to_string(m.worker);
    return says(m, j);
  }
  void begin_with(const wire::DataIdentity& first, const wire::DataIdentity& second) {
    std::vector<Member> all = {w(0), w(1)};
    if (uses_servers()) all.insert(all.end(), {s(0), s(1)});
    begin(expecting(), all);
    if (uses_servers()) joins(s(0));
    joins_with(w(0), first);
    joins_with(w(1), second);
    if (uses_servers()) joins(s(1));
  }
  // The end, once every process has left.
  Outcome the_end() {
    for (const Member m : {w(0), w(1)}) exits(m, SIGTERM);
    if (uses_servers()) {
      for (const Member m : {s(0), s(1)}) exits(m, SIGTERM);
    }
    return outcome.value_or(Outcome{});
  }

  std::size_t begun = 0;  // messages that would make a process begin to train
};

TEST_P(JobDataTest, AWorkerWithTheDataOfTheRunIsLetIn) {
  begin_with(data(), data());
  EXPECT_GT(begun, 0U);
  EXPECT_FALSE(machine->lifecycle().outcome());
}

// A second in which w0 indexes and w1 waits for its index.
class JobIndexingTest : public JobDataTest {
 protected:
  void begin_without_workers() {
    std::vector<Member> all = {w(0), w(1)};
    if (uses_servers()) all.insert(all.end(), {s(0), s(1)});
    begin(expecting(), all);
    if (uses_servers()) {
      for (const Member m : {s(0), s(1)}) joins(m);
    }
  }
  static wire::Report opens(std::string_view what, std::uint64_t done) {
    wire::Report report;
    report.activity = "startup";
    report.io = what;
    report.io_path = "/d/train.tsv";
    report.io_done_bytes = done;
    report.io_total_bytes = 100'000'000;
    return report;
  }
  job::Effects second(std::uint64_t indexed, std::uint64_t seen) {
    clock.advance(seconds(1));
    says(w(0), wire::Metrics{opens(kIndexesData, indexed), 1000});
    says(w(1), wire::Metrics{opens(kWaitsForIndex, seen), 1000});
    if (uses_servers()) {
      for (const Member m : {s(0), s(1)}) says(m, wire::Metrics{{}, 1000});
    }
    return feed(job::TimePassed{});
  }
  // Who is ended, with the cause, within ten minutes of standing still.
  std::vector<std::string> ended_if_nothing_moves() {
    std::vector<std::string> ended;
    for (int s = 0; s < 600 && ended.empty(); ++s) {
      for (const auto& note : all<job::PublishNote>(second(31'000'000, 5))) {
        if (note.text.find("is ended") != std::string::npos) ended.push_back(note.text);
      }
    }
    return ended;
  }
};

TEST_P(JobIndexingTest, WorkersThatIndexAreWaitedForAsLongAsBytesMove) {
  begin_without_workers();
  for (std::uint64_t s = 1; s <= 1000; ++s) {
    ASSERT_TRUE(all<lifecycle::StopWorker>(second(s * 100'000, 0)).empty()) << s;
  }
  EXPECT_EQ(io_text(machine->report().workers.at(0).io),
            "indexing the data: 100.0 of 100.0 MB, 0.1 MB/s");
  joins_with(w(0), data());
  joins_with(w(1), data());
  EXPECT_GT(begun, 0U);
}

TEST_P(JobIndexingTest, OneThatStandsStillIsEndedAndTheOneThatWaitsForItsIndexIsNot) {
  begin_without_workers();
  EXPECT_THAT(ended_if_nothing_moves(),
              testing::ElementsAre(HasSubstr("w0 on a is ended: indexing the data /d/train.tsv "
                                             "stands still at 31.0 of 100.0 MB for 120 s: look at "
                                             "the disk there")));
}

INSTANTIATE_TEST_SUITE_P(Syncs, JobIndexingTest,
                         testing::Values(SyncStrategy::kAllReduce, SyncStrategy::kPsBsp,
                                         SyncStrategy::kPsAsp, SyncStrategy::kHybrid));

TEST_P(JobDataTest, OneHostsFileThatDiffersEndsTheJobBeforeAnythingIsTrained) {
  begin_with(data(), with_other_training_file());
  EXPECT_EQ(begun, 0U);
  const Outcome end = the_end();
  EXPECT_EQ(end.state, JobEnd::kFailed);
  EXPECT_EQ(end.code, 2);
  EXPECT_EQ(end.exit_class, ExitClass::kData);
  EXPECT_THAT(end.first_cause,
              AllOf(HasSubstr("w1 on a"), HasSubstr("/d/train.tsv"), HasSubstr("xxh3 cc"),
                    HasSubstr("xxh3 aa"), HasSubstr("antdt run --resume")));
}

TEST_P(JobDataTest, WorkersThatAgreeOnOtherDataThanTheLaunchersEndTheJob) {
  wire::DataIdentity twice = data();
  twice.train_records = 200;
  twice.fingerprint = "twice";
  twice.files[0] = {"train", "/d/train.tsv", 2000, 200, "ee"};
  begin_with(twice, twice);
  EXPECT_EQ(begun, 0U);
  EXPECT_THAT(the_end().first_cause,
              AllOf(HasSubstr("w0 on a has 200 records"), HasSubstr("data.json has 100 records")));
}

TEST_P(JobDataTest, AnEvaluationFileAloneCountsAsMuch) {
  begin_with(data(), with_other_evaluation_file());
  EXPECT_EQ(begun, 0U);
  EXPECT_THAT(the_end().first_cause,
              AllOf(HasSubstr("/d/eval.tsv"), HasSubstr("21 records"), HasSubstr("20 records")));
}

TEST_P(JobDataTest, AnIndexThatWasBuiltInAnotherWayIsOtherData) {
  wire::DataIdentity other = data();
  other.built_by = "index builder 3, format criteo";
  begin_with(data(), other);
  EXPECT_EQ(begun, 0U);
  EXPECT_THAT(the_end().first_cause, AllOf(HasSubstr("index builder 3"),
                                           HasSubstr("index builder 2"), HasSubstr("release")));
}

TEST_P(JobDataTest, AProgramThatTellsNoDataIsLetIn) {
  begin_with({}, {});
  EXPECT_GT(begun, 0U);
  EXPECT_FALSE(machine->lifecycle().outcome());
}

TEST_P(JobDataTest, ARunThatGoesOnLooksAgain) {
  begin_with(data(), data());
  feed(lifecycle::StopRequested{"asked", Duration::zero()});
  the_end();
  const std::size_t before = begun;
  auto opened = JobMachine::open(expecting(), std::move(*make_solution("none")), journal);
  ASSERT_TRUE(opened) << opened.error().message;
  machine.emplace(std::move(*opened));
  outcome.reset();
  feed(job::ResumeOrdered{});
  host("a");
  begun = before;
  for (const WorkerProcess& p : std::vector(machine->lifecycle().workers())) {
    feed(lifecycle::WorkerStarted{p.member(), 7});
    if (!p.is_server()) joins_with(p.member(), with_other_training_file());
  }
  EXPECT_EQ(begun, before);
  ASSERT_TRUE(machine->lifecycle().outcome());
  EXPECT_THAT(machine->lifecycle().outcome()->first_cause, HasSubstr("/d/train.tsv"));
}

INSTANTIATE_TEST_SUITE_P(EverySync, JobDataTest,
                         testing::Values(SyncStrategy::kAllReduce, SyncStrategy::kPsBsp,
                                         SyncStrategy::kPsSsp, SyncStrategy::kPsAsp),
                         [](const auto& of) {
                           std::string name(name_of(of.param));
                           std::erase(name, '-');
                           return name;
                         });

// Members that train lose nothing: their progress is written before the job ends.
TEST_F(JobServersTest, AReplacementWithOtherDataEndsTheJobAfterACheckpoint) {
  JobMachineConfig c = with_servers();
  c.data = data();
  const auto joins_with = [&](Member m, const wire::DataIdentity& found) {
    wire::Join j = join();
    j.data = found;
    j.key = "key of " + to_string(m.worker);
    return says(m, j);
  };
  begin(c, {w(0), w(1), s(0), s(1)});
  for (const Member m : {w(0), w(1)}) joins_with(m, data());
  for (const Member m : {s(0), s(1)}) joins(m);
  serve({s(0), s(1)});
  exits(w(1), SIGKILL);
  serve({s(0), s(1)}, {places(w(1), 1, 0)});
  clock.advance(std::chrono::seconds(5));
  feed(job::TimePassed{});
  feed(lifecycle::WorkerStarted{w(1, 2), 2});
  const auto outputs = joins_with(w(1, 2), with_other_training_file());
  EXPECT_EQ(sent<wire::PsCut>(outputs).size(), 2U) << "each server is asked for a checkpoint";
  EXPECT_TRUE(all<lifecycle::StopWorker>(outputs).empty());
  const auto leave = sent<wire::Leave>(outputs);
  ASSERT_EQ(leave.size(), 1U);
  EXPECT_EQ(leave[0].first, w(1, 2));
  EXPECT_EQ(leave[0].second.code, 2);

  feed(job::CheckpointStored{1, Step{1}, "s1-l1", ""});
  EXPECT_TRUE(machine->lifecycle().outcome()->resumable);
}

TEST(DataIdentity, FilesOfDifferentNumberNameTheOneThatIsMissing) {
  wire::DataIdentity fewer = data();
  fewer.files.pop_back();
  fewer.eval_records = 0;
  EXPECT_THAT(*data_difference(data(), fewer, "w1 on b"),
              HasSubstr("/d/eval.tsv: w1 on b has no such file; data.json has 20 records"));
  EXPECT_THAT(*data_difference(fewer, data(), "w1 on b"),
              HasSubstr("/d/eval.tsv: w1 on b has 20 records"));
}

TEST(DataIdentity, AWorkerHasOnlyTheFilesThatArePinnedToItsDomain) {
  wire::DataIdentity all = data();
  all.train_records = 150;
  all.files.insert(all.files.begin() + 1, {"train", "/d/west.tsv", 500, 50, "ee"});
  const PinnedData pins{
      {"east", "west"},
      2,
      {{"train", "east", 100, {"/d/train.tsv"}}, {"train", "west", 50, {"/d/west.tsv"}}}};
  EXPECT_FALSE(data_difference(data_in(all, pins, "east"), data(), "w0"));
  EXPECT_THAT(data_difference(data_in(all, pins, "west"), data(), "w0").value_or(""),
              HasSubstr("/d/train.tsv"));
  EXPECT_EQ(data_in(all, pins, "west").train_records, 50U);
  EXPECT_EQ(data_in(all, pins, "").files.size(), 1U) << "the evaluation is not pinned";
  EXPECT_EQ(data_in(all, {}, "west").files.size(), 3U);
}

TEST(DataIdentity, PathsMayDifferFromHostToHost) {
  wire::DataIdentity elsewhere = data();
  elsewhere.files[0].path = "/mnt/train.tsv";
  EXPECT_FALSE(data_difference(data(), elsewhere, "w1 on b"));
}

TEST(DataIdentity, ARunOfAReleaseThatWroteNoFilesIsComparedByItsTotals) {
  wire::DataIdentity old = data();
  old.files.clear();
  old.built_by.clear();
  old.detail = "/d/train.tsv: 1000 bytes";
  EXPECT_FALSE(data_difference(old, data(), "w1 on b"));
  EXPECT_THAT(*data_difference(old, with_other_training_file(), "w1 on b"),
              AllOf(HasSubstr("fingerprint other"), HasSubstr("fingerprint all")));
}

TEST(DataIdentity, ThatOnlyTheNumberOfRecordsIsToldIsEnoughToDiffer) {
  wire::DataIdentity number;
  number.train_records = 4000;
  EXPECT_TRUE(data_difference(data(), number, "w1 on b"));
  number.train_records = 100;
  EXPECT_FALSE(data_difference(data(), number, "w1 on b"));
}

}  // namespace
}  // namespace antdt::ctl
