// The functions of antdt.h that read records of text files.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "include/antdt.h"
#include "trainer/c_api/data_progress.h"
#include "trainer/c_api/handle.h"
#include "trainer/c_api/last_error.h"
#include "trainer/data/index/index_build.h"
#include "trainer/data/line_files.h"

using namespace antdt;
using namespace antdt::capi;

struct antdt_data {
  explicit antdt_data(data::LineFiles opened)
      : lines(std::move(opened)), fingerprint(data::fingerprint_of(lines.meta())) {}

  data::LineFiles lines;
  const std::string fingerprint;
  std::string bytes;  // of the last call's records
  std::vector<std::uint64_t> ends;
};

namespace {

constexpr std::uint32_t kFlagsOfProgress = ANTDT_DATA_WAITS;

Result<std::unique_ptr<antdt_data>> open_lines(const antdt_data_options& options) {
  data::DataConfig config;
  config.format = "lines";
  config.index_beside = (options.flags & ANTDT_DATA_INDEX_BESIDE) != 0;
  for (std::uint64_t i = 0; i < options.path_count; ++i) {
    if (options.paths[i] == nullptr || *options.paths[i] == 0) {
      return fail(ErrorKind::kUsage, "antdt_data_open: paths[{}] is empty", i);
    }
    config.paths.emplace_back(options.paths[i]);
  }
  const bool told = options.cache_dir != nullptr && *options.cache_dir != 0;
  std::string cache = told ? options.cache_dir : "";
  if (!told) {
    ANTDT_TRY(cache, data::default_cache_dir());
  }
  DataProgress progress = DataProgress::of_this_process();
  data::Opening opening([&](const client::Io& io) { progress.tell(io); });
  ANTDT_TRY(data::Index index, data::ensure_index(config, cache, nullptr, opening));
  ANTDT_TRY(data::LineFiles lines, data::LineFiles::open(std::move(index)));
  return std::make_unique<antdt_data>(std::move(lines));
}

template <class Call>
int with_data(antdt_data* data, const char* function, Call call) {
  return guarded([&]() -> int {
    if (data == nullptr) return failed(ANTDT_USAGE, fmt::format("{}: data is NULL", function));
    return call();
  });
}

}  // namespace

extern "C" {

int antdt_data_open(const antdt_data_options* options, antdt_data** data) {
  return guarded([&]() -> int {
    if (data == nullptr) return failed(ANTDT_USAGE, "antdt_data_open: data is NULL");
    *data = nullptr;
    const auto given = copy_in("antdt_data_open", "options", options);
    if (!given) return failed(ANTDT_USAGE, given.error().message);
    if (given->paths == nullptr || given->path_count == 0) {
      return failed(ANTDT_USAGE, "antdt_data_open: options.paths names no file");
    }
    if ((given->flags & ~std::uint32_t{ANTDT_DATA_INDEX_BESIDE}) != 0) {
      return failed(ANTDT_USAGE, fmt::format("antdt_data_open: options.flags is {}, which this "
                                             "release of libantdt does not know",
                                             given->flags));
    }
    auto made = open_lines(*given);
    if (!made) return failed(made.error());
    *data = made->release();
    return ANTDT_OK;
  });
}

int antdt_data_describe(antdt_data* data, antdt_data_about* about) {
  return with_data(data, "antdt_data_describe", [&]() -> int {
    const antdt_data_about said{sizeof(antdt_data_about), 0, data->lines.records(),
                                data->fingerprint.c_str()};
    return copy_out("antdt_data_describe", "about", said, about);
  });
}

int antdt_data_read(antdt_data* data, const uint64_t* records, uint64_t count,
                    antdt_data_records* read) {
  return with_data(data, "antdt_data_read", [&]() -> int {
    if (const int wrong = check_out("antdt_data_read", "read", read); wrong != ANTDT_OK) {
      return wrong;
    }
    if (records == nullptr && count > 0) {
      return failed(ANTDT_USAGE, "antdt_data_read: records is NULL");
    }
    data->bytes.clear();
    data->ends.clear();
    for (std::uint64_t i = 0; i < count; ++i) {
      if (records[i] >= data->lines.records()) {
        return failed(ANTDT_USAGE,
                      fmt::format("antdt_data_read: there is no record {}: there are {}",
                                  records[i], data->lines.records()));
      }
      const auto line = data->lines.line(records[i]);
      if (!line) return failed(line.error());
      data->bytes += *line;
      data->ends.push_back(data->bytes.size());
    }
    const antdt_data_records said{sizeof(antdt_data_records), 0, data->bytes.data(),
                                  data->ends.data(), count};
    return copy_out("antdt_data_read", "read", said, read);
  });
}

int antdt_data_progress(const char* path, uint64_t done_bytes, uint64_t total_bytes,
                        uint32_t flags) {
  return guarded([&]() -> int {
    if ((flags & ~kFlagsOfProgress) != 0) {
      return failed(ANTDT_USAGE, fmt::format("antdt_data_progress: flags is {}, which this release "
                                             "of libantdt does not know",
                                             flags));
    }
    ProgramProgress& progress = ProgramProgress::of_this_process();
    if (path == nullptr) {
      progress.ends();
    } else {
      const char* what = (flags & ANTDT_DATA_WAITS) != 0 ? data::kWaitsForIndex : data::kOpensData;
      progress.tell({what, path, done_bytes, total_bytes});
    }
    return ANTDT_OK;
  });
}

void antdt_data_close(antdt_data* data) {
  std::ignore = guarded([&]() -> int {
    delete data;
    return ANTDT_OK;
  });
}

}  // extern "C"
