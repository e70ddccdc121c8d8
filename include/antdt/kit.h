// A worker of one's own in C++: what the program has beside what is built in is a value, a
// Registry, and run_worker() is all of main(). docs/programs/cpp-kit.md walks through a whole
// program.
//
// It needs C++20 and the LibTorch that the library was built with.
#pragma once

#include <antdt/kit/model.h>
#include <antdt/kit/options.h>
#include <antdt/kit/parts.h>

#include <memory>
#include <string>

namespace antdt {

// The names that job.toml may use: trainer.model, reader, optimizer, metric, schedule. A name that
// is there already is an error of the program, which run_worker() tells.
class ANTDT_KIT_API Registry {
 public:
  Registry();
  Registry(Registry&&) noexcept;
  Registry& operator=(Registry&&) noexcept;
  ~Registry();

  Registry& model(const std::string& name, kit::ModelFactory factory);
  Registry& reader(const std::string& name, kit::ReaderFactory factory);
  Registry& optimizer(const std::string& name, kit::OptimizerFactory factory);
  Registry& metric(const std::string& name, kit::MetricFactory factory);
  Registry& schedule(const std::string& name, kit::ScheduleFactory factory);

  struct Impl;
  [[nodiscard]] Impl& impl() { return *impl_; }
  [[nodiscard]] const Impl& impl() const { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

// What antdt-trainer has: its models and optimizers.
[[nodiscard]] ANTDT_KIT_API Registry built_in_registry();

// Is the worker that the agent started, to its end; answers the exit code. Instead, with
//   --describe    prints the registry's names as JSON;
//   --check JOB   says whether it could work for the job of that effective configuration (JSON):
//                 antdt run calls it so before anything starts.
[[nodiscard]] ANTDT_KIT_API int run_worker(int argc, char** argv, const Registry& registry);

}  // namespace antdt
