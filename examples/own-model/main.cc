// A worker with a model, a reader and a schedule of its own: points in the plane lie on rings, and
// a network with BatchNorm is to tell odd rings from even ones. docs/programs/cpp-kit.md walks
// through it.
#include <antdt/kit.h>

#include <algorithm>
#include <cmath>

namespace kit = antdt::kit;

// Record i is made by a formula, so that it is the same on every host.
class Rings final : public kit::Reader {
 public:
  Rings(std::uint64_t records, bool for_evaluation, double rings)
      : records_(records), first_(for_evaluation ? 1'000'000 : 0), rings_(rings) {}

  std::uint64_t records() const override { return records_; }
  kit::DataShape shape() const override {
    kit::DataShape shape;
    shape.classes = 2;
    shape.columns = {{"x", torch::kFloat32, {2}}, {"labels", torch::kFloat32, {}}};
    return shape;
  }
  std::string fingerprint() const override { return "rings " + std::to_string(rings_); }
  void read(std::span<const std::uint64_t> record_numbers, kit::Tensors& rows) override {
    auto x = rows.at("x").accessor<float, 2>();
    auto labels = rows.at("labels").accessor<float, 1>();
    for (std::size_t i = 0; i < record_numbers.size(); ++i) {
      const auto n = static_cast<double>(first_ + record_numbers[i]);
      const double angle = 2.399963 * n, radius = std::fmod(0.6180339887 * n, 1.0);
      const auto row = static_cast<std::int64_t>(i);
      x[row][0] = static_cast<float>(radius * std::cos(angle));
      x[row][1] = static_cast<float>(radius * std::sin(angle));
      labels[row] = static_cast<int>(radius * rings_) % 2 == 1 ? 1.0F : 0.0F;
    }
  }

 private:
  std::uint64_t records_, first_;
  double rings_;
};

class Net final : public kit::Model {
 public:
  explicit Net(std::int64_t width) {
    using namespace torch::nn;
    layers_ = register_module(
        "layers", Sequential(BatchNorm1d(2), Linear(2, width), ReLU(), BatchNorm1d(width),
                             Linear(width, width), ReLU(), Linear(width, 1)));
  }
  torch::Tensor forward(const kit::Batch& batch) override {
    torch::Tensor x = batch.columns.at("x");
    if (batch.records == 1) x = x.expand({2, -1});  // BatchNorm needs two rows
    return layers_->forward(x).squeeze(1).slice(0, 0, batch.records);
  }

 private:
  torch::nn::Sequential layers_ = nullptr;
};

kit::Schedule warm_up(const kit::Context& context) {
  const double steps = context.user.number("warm_up_steps", 100);
  return [steps](std::uint64_t done) {
    return std::min(1.0, (static_cast<double>(done) + 1) / steps);
  };
}

int main(int argc, char** argv) {
  antdt::Registry registry = antdt::built_in_registry();
  registry
      .reader("rings",
              [](const kit::Context& context, bool for_evaluation) {
                return std::make_unique<Rings>(context.data.id_rows, for_evaluation,
                                               context.user.number("rings", 3));
              })
      .model("net",
             [](const kit::Context& context) {
               return std::make_shared<Net>(context.user.integer("width", 32));
             })
      .schedule("warm-up", warm_up);
  return antdt::run_worker(argc, argv, registry);
}
