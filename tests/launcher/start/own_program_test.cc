#include "launcher/start/own_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/launcher/job_text.h"

namespace antdt::launcher {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> started(std::vector<std::string> command, const std::string& model,
                                 const std::string& protocol = "antdt") {
  JobConfig config;
  config.roles.worker.command = std::move(command);
  config.roles.worker.protocol = protocol;
  config.trainer.model = model;
  choose_built_in(config);
  return config.roles.worker.command;
}

TEST(OwnProgramTest, InstrumentsAreTrainedWithoutLibTorch) {
  for (const std::string model : {"tally", "tally3", "emulated"}) {
    EXPECT_TRUE(is_instrument(model)) << model;
    EXPECT_THAT(started({"antdt-trainer", "x"}, model), ElementsAre("antdt-instrument", "x"));
  }
  EXPECT_THAT(started({"antdt-trainer"}, "lr"), ElementsAre("antdt-trainer"));
}

TEST(OwnProgramTest, WhatTheUserNamesIsStarted) {
  EXPECT_THAT(started({"/opt/bin/antdt-trainer"}, "tally"), ElementsAre("/opt/bin/antdt-trainer"));
  EXPECT_THAT(started({"mine"}, "tally"), ElementsAre("mine"));
  EXPECT_THAT(started({"env", "antdt-trainer"}, "tally"), ElementsAre("env", "antdt-trainer"));
  EXPECT_THAT(started({"antdt-trainer"}, "tally", "torchrun"), ElementsAre("antdt-trainer"));
  EXPECT_THAT(started({}, "tally"), ElementsAre());
}

TEST(OwnProgramTest, AModelThatTheProgramHasNotIsRefusedBeforeAnythingStarts) {
  const std::string instrument =
      replaced(kJob, "count = 4", "count = 4\ncommand = [\"antdt-instrument\"]");
  EXPECT_EQ(problems_of(instrument, {"trainer.model=tally"}), "");
  EXPECT_THAT(problems_of(instrument, {"trainer.model=deepfm"}),
              HasSubstr("trainer.model: 'deepfm' needs LibTorch, which antdt-instrument does "
                        "without: write roles.worker.command = [\"antdt-trainer\"]"));
}

TEST(OwnProgramTest, BothBuiltInProgramsAreKnown) {
  for (const std::string program :
       {"antdt-trainer", "antdt-instrument", "/usr/bin/antdt-instrument"}) {
    EXPECT_TRUE(is_built_in(program)) << program;
    JobConfig config;
    config.roles.worker.command = {program};
    EXPECT_FALSE(may_have_own_names(config)) << program;
  }
  EXPECT_FALSE(is_built_in("my-antdt-trainer"));
  EXPECT_FALSE(is_built_in("antdt-trainer/own"));
}

}  // namespace
}  // namespace antdt::launcher
