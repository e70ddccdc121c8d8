#include "trainer/data/formats/idx.h"

#include <algorithm>

#include "trainer/data/index/index_build.h"
#include "trainer/data/index/mapped_file.h"

namespace antdt::data {
namespace {

struct Idx {
  std::vector<std::uint32_t> dimensions;
  std::string_view values;
};

std::uint32_t big_endian(std::string_view bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i)
    value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

Result<Idx> parse_idx(const MappedFile& file) {
  const std::string_view bytes = file.bytes();
  if (bytes.size() < 8 || bytes[0] != 0 || bytes[1] != 0) {
    return fail(ErrorKind::kUsage, "{} is not an IDX file: it does not begin with two zero bytes",
                file.path());
  }
  if (bytes[2] != 8) {
    return fail(ErrorKind::kUsage,
                "{} holds values of IDX type 0x{:02x}; only unsigned bytes (0x08) are read",
                file.path(), static_cast<unsigned char>(bytes[2]));
  }
  Idx idx;
  const auto rank = static_cast<std::size_t>(static_cast<unsigned char>(bytes[3]));
  std::uint64_t values = 1;
  if (rank == 0 || rank > 4 || bytes.size() < 4 + 4 * rank) {
    return fail(ErrorKind::kUsage, "{} has {} dimensions; 1 to 4 are read", file.path(), rank);
  }
  for (std::size_t i = 0; i < rank; ++i) {
    idx.dimensions.push_back(big_endian(bytes, 4 + 4 * i));
    if (idx.dimensions.back() == 0 || values > (1ULL << 48) / idx.dimensions.back()) {
      return fail(ErrorKind::kUsage, "{}: dimension {} is {}", file.path(), i,
                  idx.dimensions.back());
    }
    values *= idx.dimensions.back();
  }
  idx.values = bytes.substr(4 + 4 * rank);
  if (idx.values.size() != values) {
    return fail(ErrorKind::kUsage,
                "{} says that it holds {} values and has {} bytes of them: is it cut short?",
                file.path(), values, idx.values.size());
  }
  return idx;
}

struct FilePair {
  MappedFile image_file, label_file;
  Idx images;
  std::string_view labels;
};

Result<FilePair> open_pair(const std::string& images, const std::string& labels) {
  ANTDT_TRY(MappedFile image_file, open_unpacked_file(images));
  ANTDT_TRY(MappedFile label_file, open_unpacked_file(labels));
  ANTDT_TRY(Idx image_idx, parse_idx(image_file));
  ANTDT_TRY(const Idx label_idx, parse_idx(label_file));
  if (image_idx.dimensions.size() < 3) {
    return fail(ErrorKind::kUsage, "{} has {} dimensions; images have 3 or 4", images,
                image_idx.dimensions.size());
  }
  if (label_idx.dimensions.size() != 1) {
    return fail(ErrorKind::kUsage, "{} has {} dimensions; labels have 1", labels,
                label_idx.dimensions.size());
  }
  if (label_idx.dimensions[0] != image_idx.dimensions[0]) {
    return fail(ErrorKind::kUsage, "{} has {} images, but {} has {} labels", images,
                image_idx.dimensions[0], labels, label_idx.dimensions[0]);
  }
  return FilePair{std::move(image_file), std::move(label_file), std::move(image_idx),
                  label_idx.values};
}

class IdxReader final : public RecordReader {
 public:
  IdxReader(std::vector<FilePair> pairs, std::uint32_t classes) : pairs_(std::move(pairs)) {
    for (const FilePair& pair : pairs_) {
      first_.push_back(records_);
      records_ += pair.images.dimensions[0];
    }
    const auto& d = pairs_[0].images.dimensions;
    shape_.channels = d.size() == 4 ? d[1] : 1;
    shape_.height = d[d.size() - 2];
    shape_.width = d[d.size() - 1];
    shape_.classes = classes;
    shape_.dense_width = std::size_t{shape_.channels} * shape_.height * shape_.width;
  }

  const DataShape& shape() const override { return shape_; }
  std::uint64_t records() const override { return records_; }

  Status read(std::span<const std::uint64_t> record_numbers, Examples& out) override {
    out.clear();
    out.count = record_numbers.size();
    out.dense.resize(out.count * shape_.dense_width);
    out.labels.resize(out.count);
    for (std::size_t i = 0; i < out.count; ++i) {
      const std::uint64_t record = record_numbers[i];
      if (record >= records_) {
        return fail(ErrorKind::kCorrupt, "record {} was asked for, and the data set has {}", record,
                    records_);
      }
      std::size_t file = first_.size() - 1;
      while (record < first_[file]) --file;
      const std::uint64_t at = record - first_[file];
      const std::string_view pixels =
          pairs_[file].images.values.substr(at * shape_.dense_width, shape_.dense_width);
      std::transform(
          pixels.begin(), pixels.end(), out.dense.data() + i * shape_.dense_width,
          [](char p) { return static_cast<float>(static_cast<unsigned char>(p)) / 255.0F; });
      out.labels[i] = static_cast<unsigned char>(pairs_[file].labels[at]);
    }
    return {};
  }

 private:
  std::vector<FilePair> pairs_;
  std::vector<std::uint64_t> first_;  // first record of each file
  std::uint64_t records_ = 0;
  DataShape shape_;
};

IndexedFile describe(const MappedFile& file, std::uint64_t first, std::uint64_t records,
                     Opening& opening) {
  return {file.path(),
          file.bytes().size(),
          file.mtime_ns(),
          sample_fingerprint(file.bytes()),
          hex_of(opening.hash(kIndexesData, file, file.bytes())),
          first,
          records,
          file.ctime_ns()};
}

}  // namespace

Status build_idx(const DataConfig& config, IndexWriter& writer, Opening& opening) {
  if (config.label_paths.size() != config.paths.size()) {
    return fail(ErrorKind::kUsage,
                "data: {} files of images and {} of labels; format \"idx\" needs one label file "
                "for each (labels, eval_labels)",
                config.paths.size(), config.label_paths.size());
  }
  IndexMeta meta;
  meta.built_by = built_by(config);
  for (std::size_t i = 0; i < config.paths.size(); ++i) {
    ANTDT_TRY(const FilePair pair, open_pair(config.paths[i], config.label_paths[i]));
    const std::uint64_t count = pair.images.dimensions[0];
    const auto largest =
        *std::max_element(pair.labels.begin(), pair.labels.end(), [](char a, char b) {
          return static_cast<unsigned char>(a) < static_cast<unsigned char>(b);
        });
    meta.classes = std::max({meta.classes, static_cast<unsigned char>(largest) + 1U, 2U});
    meta.files.push_back(describe(pair.image_file, meta.records, count, opening));
    meta.files.push_back(describe(pair.label_file, meta.records, 0, opening));
    meta.records += count;
  }
  return writer.finish(meta, {}, opening);
}

Result<std::unique_ptr<RecordReader>> open_idx(const Index& index, std::uint32_t classes) {
  std::vector<FilePair> pairs;
  const auto& files = index.meta().files;
  for (std::size_t i = 0; i + 1 < files.size(); i += 2) {
    ANTDT_TRY(FilePair pair, open_pair(files[i].path, files[i + 1].path));
    const auto inner = [](const FilePair& p) {
      return std::vector(p.images.dimensions.begin() + 1, p.images.dimensions.end());
    };
    if (!pairs.empty() && inner(pair) != inner(pairs[0])) {
      return fail(ErrorKind::kUsage, "{} has images of another size than {}", files[i].path,
                  files[0].path);
    }
    pairs.push_back(std::move(pair));
  }
  return std::make_unique<IdxReader>(std::move(pairs), classes);
}

}  // namespace antdt::data
