// What is trained: a module of LibTorch that makes an output of a batch, and a loss of the output.
#pragma once

#include <antdt/kit/options.h>
#include <torch/torch.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace antdt::kit {

using Tensors = std::map<std::string, torch::Tensor>;

// Some records, a row each. A reader of the program's own fills `columns`, and those of them that
// have the names of the members are the members, too. Tensors that are not there are undefined.
struct Batch {
  std::int64_t records = 0;
  torch::Tensor dense;    // records x …, float: the numbers of formats criteo, csv and idx
  torch::Tensor ids;      // records x fields, int64: rows of a table; of format index the record
  torch::Tensor labels;   // records, float: a class, or a number to predict
  torch::Tensor weights;  // records, float; undefined: all 1
  std::uint32_t classes = 1;  // 2: labels are 0 or 1; more: so many classes; 1: a number
  Tensors columns;
};

// What the records are like; [data] says it, or the program's own reader.
struct Column {
  std::string name;
  torch::ScalarType type = torch::kFloat32;  // also kFloat64, kInt64, kInt32, kUInt8 or kBool
  std::vector<std::int64_t> sizes = {};      // of one record; empty: one number
};
struct DataShape {
  std::size_t dense_width = 0;  // numbers of a record
  std::size_t id_width = 0;     // ids of a record
  std::uint64_t id_rows = 0;    // ids are 0 or more, and below this
  std::uint32_t classes = 1;    // as in Batch
  std::uint32_t channels = 0;   // of images: dense is channels x height x width in [0, 1]
  std::uint32_t height = 0;
  std::uint32_t width = 0;
  std::vector<Column> columns = {};  // of a reader of the program's own
};

// [trainer] and what else of job.toml a part may want to know.
struct Settings {
  std::string model;
  std::string optimizer;
  double learning_rate = 0;
  double momentum = 0;
  double weight_decay = 0;
  std::uint32_t embedding_dim = 0;
  std::vector<std::uint32_t> hidden;
  std::vector<std::uint32_t> cin_layers;
  std::vector<std::uint32_t> bottom_hidden;
  std::uint32_t global_batch = 0;  // records of a step, over all workers
  std::uint64_t seed = 0;
  bool on_servers = false;  // parameter servers hold the model
};

// What a part is made from. Valid as long as the program runs.
struct Context {
  const Settings& settings;
  const Options& user;
  const DataShape& data;  // for a reader: of format index
};

// Sums over a micro-batch, not means: gradients of all members are summed and divided by the sum of
// all weights, so that it does not matter who computes how many records.
struct Loss {
  torch::Tensor sum;  // one number: each record's loss times its weight
  double weight = 0;  // the sum of these weights
};

// Columns [first, first + width) of an embedding table, whose values are drawn from a normal
// distribution around 0 with this deviation; 0: they begin with zeros. On parameter servers they
// are a table of that name.
struct TableColumns {
  std::string name;
  std::int64_t first = 0;
  std::int64_t width = 1;
  double deviation = 0;
};

// Parameters are float32 and are registered in the order in which forward uses them, which lets the
// sums over the members begin while backward still runs. They begin alike on all members: the seed
// of job.toml is set before a model is made. Parameters that need no gradient stay as they are.
//
// Buffers, as BatchNorm's running statistics, are a part of the model: a step adds to each the mean
// of the members' changes by the weight of what each computed, so that they are equal on all
// members; a step that is discarded leaves them as they were. The model is in training mode except
// while it evaluates.
class ANTDT_KIT_API Model : public torch::nn::Module {
 public:
  ~Model() override;

  // What `loss` and the metric take. For the loss that is built in: a number for each record where
  // batch.classes is 1 or 2 (a prediction, or a logit), else records x classes logits.
  virtual torch::Tensor forward(const Batch& batch) = 0;

  // Built in: squared error for a number, cross entropy (natural logarithms) for classes.
  virtual Loss loss(const torch::Tensor& output, const Batch& batch);

  // Whether parameter servers may hold it: each worker fetches the rows of its table that a batch
  // names, and all other parameters. True where it has a table.
  [[nodiscard]] virtual bool fits_servers() const;

  // The name and the columns of the table that was registered; empty: there is none.
  [[nodiscard]] const std::string& table_name() const { return table_name_; }
  [[nodiscard]] const std::vector<TableColumns>& table_columns() const { return table_columns_; }

 protected:
  // An embedding table of rows x (all columns' width), as a parameter of that name. Of it a batch
  // uses the rows that batch.ids names, which is why the members of an all-reduce and parameter
  // servers can do with these rows: there a batch's ids are their places among them. One
  // a model; `rows` is data.id_rows.
  torch::Tensor register_table(const std::string& name, std::uint64_t rows,
                               std::vector<TableColumns> columns);

 private:
  std::string table_name_;
  std::vector<TableColumns> table_columns_;
};

// The rows of `table` that `ids` (batch x fields) names: batch x fields x width. Its gradient is
// added where it belongs, without a temporary of the size of the table.
[[nodiscard]] ANTDT_KIT_API torch::Tensor embedding_rows(const torch::Tensor& table,
                                                         const torch::Tensor& ids);

// A module of LibTorch's as a Model: `forward(net, batch)` is what it makes of a batch.
template <class Net, class Forward>
class ModuleModel final : public Model {
 public:
  ModuleModel(Net net, Forward forward)
      : net_(register_module("net", std::move(net))), forward_(std::move(forward)) {}
  torch::Tensor forward(const Batch& batch) override { return forward_(net_, batch); }

 private:
  Net net_;
  Forward forward_;
};
template <class Net, class Forward>
std::shared_ptr<Model> model_of(Net net, Forward forward) {
  return std::make_shared<ModuleModel<Net, Forward>>(std::move(net), std::move(forward));
}

}  // namespace antdt::kit
