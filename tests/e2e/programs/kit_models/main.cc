// Models that show the promises of the C++ kit in a test, and the mistakes that a user may make.
#include <antdt/kit.h>

#include <cstdlib>
#include <limits>
#include <stdexcept>

namespace kit = antdt::kit;

// One float for each record; its gradient is minus the number of times that the record is in the
// batch.
class Counts final : public kit::Model {
 public:
  // `most`: a batch of more records has no memory; 0: any has.
  explicit Counts(std::uint64_t records, std::int64_t most = 0) : most_(most) {
    counts_ = register_parameter("counts", torch::zeros({static_cast<std::int64_t>(records)}));
  }
  torch::Tensor forward(const kit::Batch& batch) override {
    TORCH_CHECK_WITH(OutOfMemoryError, most_ == 0 || batch.records <= most_,
                     "CUDA out of memory. Tried to allocate 3.00 MiB.");
    return counts_.index_select(0, batch.ids.flatten());
  }
  kit::Loss loss(const torch::Tensor& output, const kit::Batch& batch) override {
    return {-output.sum(), static_cast<double>(batch.records)};
  }

 private:
  torch::Tensor counts_;
  std::int64_t most_;
};

// Adds the sums of all members as they are, so that counts stay whole numbers.
class Count final : public kit::Optimizer {
 public:
  explicit Count(std::size_t size) : seen_(size) {}
  void update(std::span<float> values, std::span<float> gradients, std::size_t first,
              float /*scale*/) override {
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] -= gradients[i];
      seen_[first + i] -= gradients[i];
      gradients[i] = 0;
    }
  }
  std::vector<std::span<float>> state() override { return {seen_}; }

 private:
  std::vector<float> seen_;
};

class Jammed final : public kit::Optimizer {
 public:
  void update(std::span<float>, std::span<float>, std::size_t, float) override {
    throw std::runtime_error("the gears jam");
  }
  std::vector<std::span<float>> state() override { return {}; }
};

// A model with the mistake that its name describes.
class Wrong final : public kit::Model {
 public:
  explicit Wrong(std::string how) : how_(std::move(how)) {
    const char* worker = std::getenv("ANTDT_WORKER_ID");
    const bool other = worker != nullptr && std::string(worker) == "w1";
    const std::int64_t width = how_ == "unlike-sizes" && other ? 40 : 2;
    weight_ = register_parameter(
        "weight", torch::full({width}, how_ == "unlike" && other ? 2 : 1, torch::kFloat32));
  }
  torch::Tensor forward(const kit::Batch& batch) override {
    if (how_ == "throws") throw std::runtime_error("the projector has no bulb");
    const double factor = how_ == "nan" ? std::numeric_limits<double>::quiet_NaN() : 1;
    return weight_.sum() * factor * batch.ids.to(torch::kFloat32).sum(1);
  }

 private:
  std::string how_;
  torch::Tensor weight_;
};

// A table with a vector for each record, which training turns into 1.
class Table final : public kit::Model {
 public:
  explicit Table(std::uint64_t rows) {
    table_ = register_table("table", rows, {{"table", 0, 2, 0.01}});
    scale_ = register_parameter("scale", torch::ones({1}));
  }
  torch::Tensor forward(const kit::Batch& batch) override {
    return kit::embedding_rows(table_, batch.ids).sum({1, 2}) * scale_;
  }

 private:
  torch::Tensor table_, scale_;
};

class Broken final : public kit::Reader {
 public:
  explicit Broken(std::uint64_t records, bool is_named = true)
      : records_(records), is_named_(is_named) {}
  std::uint64_t records() const override { return records_; }
  kit::DataShape shape() const override {
    kit::DataShape shape;
    shape.columns = {{"labels", torch::kFloat32, {}}};
    return shape;
  }
  std::string fingerprint() const override {
    return is_named_ ? "pages" : throw std::runtime_error("the title is torn off");
  }
  void read(std::span<const std::uint64_t> record_numbers, kit::Tensors&) override {
    throw std::runtime_error("no page " + std::to_string(record_numbers.front()));
  }

 private:
  std::uint64_t records_;
  bool is_named_;
};

int main(int argc, char** argv) {
  antdt::Registry registry = antdt::built_in_registry();
  registry.model("counts", [](const kit::Context& context) {
    return std::make_shared<Counts>(context.data.id_rows);
  });
  registry.model("hungry-counts", [](const kit::Context& context) {
    return std::make_shared<Counts>(context.data.id_rows, context.user.integer("most"));
  });
  registry.optimizer(
      "count", [](const kit::Context&, std::size_t size) { return std::make_unique<Count>(size); });
  registry.optimizer("jammed",
                     [](const kit::Context&, std::size_t) { return std::make_unique<Jammed>(); });
  registry.schedule("lost", [](const kit::Context&) -> kit::Schedule {
    return [](std::uint64_t) -> double { throw std::runtime_error("no rate for today"); };
  });
  registry.model("table", [](const kit::Context& context) {
    return std::make_shared<Table>(context.data.id_rows);
  });
  registry.model("wrong", [](const kit::Context& context) {
    return std::make_shared<Wrong>(context.user.text("how"));
  });
  registry.reader("broken", [](const kit::Context& context, bool) {
    return std::make_unique<Broken>(context.data.id_rows);
  });
  registry.reader("nameless", [](const kit::Context& context, bool) {
    return std::make_unique<Broken>(context.data.id_rows, false);
  });
  registry.reader("one-more", [](const kit::Context& context, bool) {
    return std::make_unique<Broken>(context.data.id_rows + 1);
  });
  return antdt::run_worker(argc, argv, registry);
}
