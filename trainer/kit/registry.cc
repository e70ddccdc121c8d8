#include "trainer/kit/registry.h"

#include <utility>

namespace antdt {

namespace {

template <class Factory>
void add(Registry::Impl& impl, const char* kind, std::map<std::string, Factory>& to,
         const std::string& name, Factory factory, bool taken = false) {
  std::string problem;
  if (name.empty()) problem = fmt::format("the program registers a {} without a name", kind);
  if (!factory) problem = fmt::format("the program registers {} '{}' with nothing", kind, name);
  if (taken || to.contains(name)) {
    problem = fmt::format("the program registers {} '{}', and there is one: choose another name",
                          kind, name);
  }
  if (impl.problem.empty()) impl.problem = problem;
  to.emplace(name, std::move(factory));
}

}  // namespace

Registry::Registry() : impl_(std::make_unique<Impl>()) {}
Registry::Registry(Registry&&) noexcept = default;
Registry& Registry::operator=(Registry&&) noexcept = default;
Registry::~Registry() = default;

Registry& Registry::model(const std::string& name, kit::ModelFactory factory) {
  const bool taken = impl_->instruments.contains(name);
  add(*impl_, "model", impl_->models, name, std::move(factory), taken);
  return *this;
}
Registry& Registry::reader(const std::string& name, kit::ReaderFactory factory) {
  add(*impl_, "reader", impl_->readers, name, std::move(factory));
  return *this;
}
Registry& Registry::optimizer(const std::string& name, kit::OptimizerFactory factory) {
  add(*impl_, "optimizer", impl_->optimizers, name, std::move(factory));
  return *this;
}
Registry& Registry::metric(const std::string& name, kit::MetricFactory factory) {
  add(*impl_, "metric", impl_->metrics, name, std::move(factory));
  return *this;
}
Registry& Registry::schedule(const std::string& name, kit::ScheduleFactory factory) {
  add(*impl_, "schedule", impl_->schedules, name, std::move(factory));
  return *this;
}

}  // namespace antdt
