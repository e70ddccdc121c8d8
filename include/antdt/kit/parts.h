// What stands around a model: reader, optimizer, metric, schedule.
#pragma once

#include <antdt/kit/model.h>

#include <cstddef>
#include <functional>
#include <span>

namespace antdt::kit {

// Records by number, in any order. A thread beside the training reads ahead; it is the only one
// that calls read(). Used with data.format = "index", whose data.records (or eval_records) says how
// many there are.
class ANTDT_KIT_API Reader {
 public:
  virtual ~Reader();

  [[nodiscard]] virtual std::uint64_t records() const = 0;
  // The columns, and the classes of a column "labels" and id_rows of a column "ids" where there are
  // such.
  [[nodiscard]] virtual DataShape shape() const = 0;
  // Names the data and how they are read: members whose texts differ do not train together.
  [[nodiscard]] virtual std::string fingerprint() const { return {}; }
  // Fills, for each column, rows.at(name), a tensor of records x sizes whose row i is for
  // record_numbers[i]. A record that cannot be read is an exception that says why. An id that is
  // not below id_rows, or, with more than two classes, a label that is not from 0 to classes - 1,
  // ends the worker.
  virtual void read(std::span<const std::uint64_t> record_numbers, Tensors& rows) = 0;
};

// All parameters of a model lie in one array of floats, and their gradients in another, with gaps
// that are zero: an optimizer is a loop over them.
class ANTDT_KIT_API Optimizer {
 public:
  virtual ~Optimizer();
  // values -= f(gradients * scale); gradients become 0. `scale` is 1 over the weight of all
  // records.
  void step(std::span<float> values, std::span<float> gradients, float scale) {
    begin_step();
    update(values, gradients, 0, scale);
  }
  // The same in parts: what is not updated in a step stays as it is, with what is
  // remembered of it (torch.optim.SparseAdam's way; weight decay and momentum act on
  // what is updated alone). `first` is where the spans begin among all parameters.
  virtual void begin_step() { ++steps_; }
  virtual void update(std::span<float> values, std::span<float> gradients, std::size_t first,
                      float scale) = 0;
  // Of the learning rate that it was made with, from the next begin_step() on: of the schedule and
  // of what the job decided.
  void set_rate(double factor) { factor_ = factor; }
  // All that it remembers: as many arrays of `size` floats as it needs, there
  // from the start, and how many steps it has made. Who writes them replaces it.
  [[nodiscard]] virtual std::vector<std::span<float>> state() = 0;
  [[nodiscard]] std::uint64_t& steps() { return steps_; }
  // Whether a zero gradient changes neither a parameter nor what is remembered of it. Then an
  // update of a table's touched rows alone is an update of the whole table.
  [[nodiscard]] virtual bool keeps_untouched() const { return false; }
  // Whether a zero gradient changes neither a parameter nor what is remembered of it where all that
  // is remembered of it is zero, to the last bit. Then rows of a table that were in no batch yet
  // need no update.
  [[nodiscard]] virtual bool rests_at_zero() const { return keeps_untouched(); }

 protected:
  std::uint64_t steps_ = 0;
  double factor_ = 1;
};

// What a micro-batch adds to an evaluation. Of all of them the job reports loss / records as log
// loss, correct / records as accuracy and, from scores, the AUC; any of them may be left out.
struct Sums {
  double loss = 0;
  std::uint64_t correct = 0;
  torch::Tensor scores;  // records, in [0, 1]: how likely the label is 1; then labels are needed
};
using Metric = std::function<Sums(const torch::Tensor& output, const Batch& batch)>;

// The learning rate's factor in the step that follows so many steps; the same on all members.
using Schedule = std::function<double(std::uint64_t steps)>;

using ModelFactory = std::function<std::shared_ptr<Model>(const Context&)>;
using ReaderFactory = std::function<std::unique_ptr<Reader>(const Context&, bool for_evaluation)>;
// For `size` floats.
using OptimizerFactory =
    std::function<std::unique_ptr<Optimizer>(const Context&, std::size_t size)>;
using MetricFactory = std::function<Metric(const Context&)>;
using ScheduleFactory = std::function<Schedule(const Context&)>;

}  // namespace antdt::kit
