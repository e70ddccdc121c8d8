#include "trainer/torch/models/built_in.h"

#include <fmt/format.h>

#include "trainer/torch/models/models.h"

namespace antdt::trainer {
namespace {

template <class... Args>
void refuse_if(bool wrong, fmt::format_string<Args...> format, Args&&... args) {
  if (wrong) throw kit::UsageError(fmt::format(format, std::forward<Args>(args)...));
}

void need_features(const kit::Context& c) {
  refuse_if(c.data.id_width + c.data.dense_width == 0,
            "the data has no feature columns to train on");
}

void need_two_classes(const kit::Context& c) {
  refuse_if(c.data.classes > 2,
            "trainer.model '{}' needs a label of two classes, the data has {}: use mlp",
            c.settings.model, c.data.classes);
}

void need_categories(const kit::Context& c) {
  refuse_if(c.data.id_width == 0 || c.settings.embedding_dim == 0,
            "trainer.model '{}' needs category columns and embedding_dim of at least 1; "
            "the data has {} category columns: use lr or mlp",
            c.settings.model, c.data.id_width);
}

std::shared_ptr<Model> logistic_regression(const kit::Context& c) {
  need_two_classes(c);
  need_features(c);
  return std::make_shared<LogisticRegression>(c.data);
}

std::shared_ptr<Model> deepfm(const kit::Context& c) {
  need_categories(c);
  need_two_classes(c);
  return std::make_shared<DeepFm>(c.settings, c.data);
}

std::shared_ptr<Model> xdeepfm(const kit::Context& c) {
  need_categories(c);
  refuse_if(c.settings.cin_layers.empty(),
            "trainer.cin_layers is empty: 'xdeepfm' needs one layer at least");
  need_two_classes(c);
  return std::make_shared<XDeepFm>(c.settings, c.data);
}

std::shared_ptr<Model> dlrm(const kit::Context& c) {
  need_categories(c);
  refuse_if(c.data.dense_width == 0,
            "trainer.model 'dlrm' needs numeric columns, the data has none: use xdeepfm");
  need_two_classes(c);
  return std::make_shared<Dlrm>(c.settings, c.data);
}

std::shared_ptr<Model> mlp(const kit::Context& c) {
  need_features(c);
  return std::make_shared<Mlp>(c.settings, c.data);
}

std::shared_ptr<Model> resnet(const kit::Context& c) {
  refuse_if(c.data.channels * c.data.height * c.data.width == 0,
            "trainer.model 'resnet' needs images (data.format = \"idx\"): use mlp");
  return std::make_shared<ResNet>(c.data);
}

}  // namespace

std::map<std::string, kit::ModelFactory> built_in_models() {
  return {{"lr", logistic_regression},
          {"deepfm", deepfm},
          {"xdeepfm", xdeepfm},
          {"dlrm", dlrm},
          {"mlp", mlp},
          {"resnet", resnet}};
}

}  // namespace antdt::trainer
