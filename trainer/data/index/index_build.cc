#include "trainer/data/index/index_build.h"

#define XXH_INLINE_ALL
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <optional>
#include <thread>

#include "core/os/fs.h"
#include "trainer/data/content/line_scan.h"
#include "trainer/data/content/points.h"
#include "trainer/data/formats/criteo.h"
#include "trainer/data/formats/csv.h"
#include "trainer/data/formats/idx.h"
#include "trainer/data/formats/lines.h"
#include "trainer/data/index/index_writer.h"

namespace antdt::data {
namespace {

// Raise this with every change of what a record is, which rows are malformed, and in which order
// records, classes and vocabularies are numbered. Indexes of another version are not used, and
// hosts of different versions do not train together.
constexpr int kBuilderVersion = 2;

// The directory of an index that lies beside the data: hidden, so that no pattern of data files
// finds it.
constexpr const char* kBeside = ".antdt-index";

// Hashes a file behind the pass over it, while the memory is at hand: a file is read once, whether
// it is packed or not. Tells how far that is.
class HashBehindPass {
 public:
  HashBehindPass(const MappedFile& file, Opening& opening) : file_(file), opening_(opening) {
    XXH3_64bits_reset(&state_);
    follow(0);
  }
  [[nodiscard]] std::uint64_t position() const { return position_; }
  // The pass has read the file up to there.
  void follow(std::uint64_t to) {
    do {
      const std::string_view next =
          file_.bytes().substr(position_, std::min(to - position_, kAtOnce));
      XXH3_64bits_update(&state_, next.data(), next.size());
      position_ += next.size();
      opening_.tell(kIndexesData, file_.path(), position_, file_.bytes().size());
    } while (position_ < to);
  }
  // The pass may end before the file does: a packed file may be padded.
  [[nodiscard]] std::uint64_t finish() {
    follow(file_.bytes().size());
    return XXH3_64bits_digest(&state_);
  }

 private:
  static constexpr std::uint64_t kAtOnce = Opening::kTellEvery;
  const MappedFile& file_;
  Opening& opening_;
  XXH3_state_t state_;
  std::uint64_t position_ = 0;
};

// One pass over the text files of a data set.
class TextPass {
 public:
  TextPass(const DataConfig& config, const RowFormat& format, const Index* train,
           IndexWriter& writer, Opening& opening)
      : config_(config),
        format_(format),
        writer_(writer),
        opening_(opening),
        labels_(format.accepts_text_labels()),
        learns_vocabulary_(config.vocabulary && train == nullptr),
        counter_(format.fields()) {
    if (train == nullptr) return;
    labels_ = Labels(train->meta().class_names, train->meta().classes);
    labels_.freeze();
  }

  [[nodiscard]] Status run(const std::string& quarantine_file) {
    for (const std::string& path : config_.paths) {
      Status scanned = scan(path);
      // That a file cannot be unpacked is for who gave it to mend, as a malformed row is.
      if (!scanned && scanned.error().kind == ErrorKind::kCorrupt) {
        scanned.error().kind = ErrorKind::kUsage;
      }
      ANTDT_RETURN_IF_ERROR(scanned);
    }
    if (writer_.records() == 0) {
      return fail(ErrorKind::kUsage, "no record in {}{}: nothing to train on", config_.paths[0],
                  config_.paths.size() > 1 ? ", …" : "");
    }
    meta_.quarantined = quarantined_;
    if (quarantined_ > 0) {
      meta_.quarantine_file = quarantine_file;
      ANTDT_RETURN_IF_ERROR(write_file_atomic(quarantine_file, quarantine_));
    }
    meta_.records = writer_.records();
    meta_.built_by = built_by(config_);
    meta_.class_names = labels_.names();
    meta_.classes = labels_.classes();
    const Vocabulary vocabulary =
        learns_vocabulary_ ? counter_.finish(config_.vocabulary_min_count) : Vocabulary{};
    for (const auto& keys : vocabulary) meta_.vocabulary_sizes.push_back(keys.size());
    return writer_.finish(meta_, vocabulary, opening_);
  }

 private:
  [[nodiscard]] Status scan(const std::string& path) {
    ANTDT_TRY(const MappedFile file, open_text_file(path));
    const std::string_view bytes = file.bytes();
    IndexedFile indexed;
    indexed.path = path;
    indexed.bytes = bytes.size();
    indexed.mtime_ns = file.mtime_ns();
    indexed.ctime_ns = file.ctime_ns();
    indexed.sample = sample_fingerprint(bytes);
    indexed.first_record = writer_.records();
    std::uint64_t line_number = 0;
    ANTDT_TRY(const Packing packing, packing_of(path, bytes));
    HashBehindPass hash(file, opening_);
    const bool is_plain = packing == Packing::kPlain;
    const auto take = [&](std::string_view line, std::uint64_t offset) -> Status {
      if (is_plain && offset - hash.position() >= Opening::kTellEvery) hash.follow(offset);
      return take_line(path, ++line_number, line, offset);
    };
    const auto keep = [this](std::string_view window) { writer_.keep_window(window); };
    const auto passed = [&](std::uint64_t position) { hash.follow(position); };
    ANTDT_TRY(PointsFound points, scan_lines(file, take, keep, passed));
    indexed.fingerprint = hex_of(hash.finish());
    indexed.points_bytes = points.front.empty() ? 0 : points.bytes();
    writer_.add_points(std::move(points));
    indexed.records = writer_.records() - indexed.first_record;
    meta_.files.push_back(std::move(indexed));
    return {};
  }

  [[nodiscard]] Status take_line(const std::string& path, std::uint64_t number,
                                 std::string_view line, std::size_t offset) {
    if (number == 1 && format_.has_header()) {
      const std::string problem = format_.check_header(line);
      if (problem.empty()) return {};
      return fail(ErrorKind::kUsage, "{}:1: {}", path, problem);
    }
    std::string problem;
    if (!format_.parse(line, row_)) {
      problem = row_.problem;
    } else if (format_.has_label()) {
      problem = labels_.learn(row_.label);
    }
    if (!problem.empty()) return bad_row(path, number, line, problem);
    if (learns_vocabulary_) count_keys();
    writer_.add_record(offset);
    return {};
  }

  void count_keys() {
    std::size_t field = 0;
    for (const double value : row_.numbers) counter_.add(field++, number_key(value));
    for (const std::uint64_t key : row_.keys) counter_.add(field++, key);
  }

  [[nodiscard]] Status bad_row(const std::string& path, std::uint64_t number, std::string_view line,
                               const std::string& problem) {
    if (!config_.quarantine) {
      return fail(ErrorKind::kUsage,
                  "{}:{}: {}. Mend the row, or leave such rows out, counted and kept in a file, "
                  "with [data] on_bad_record = {{ action = \"quarantine\", max = 100 }}",
                  path, number, problem);
    }
    if (quarantined_ == 0) first_bad_ = fmt::format("{}:{}: {}", path, number, problem);
    if (++quarantined_ > config_.quarantine_max) {
      return fail(ErrorKind::kUsage,
                  "more than {} malformed row{}; the first is {}. Is this the right format? Mend "
                  "them or raise [data] on_bad_record.max",
                  config_.quarantine_max, config_.quarantine_max == 1 ? "" : "s", first_bad_);
    }
    quarantine_ += fmt::format("{}:{}\t{}\t{}\n", path, number, problem, line);
    return {};
  }

  const DataConfig& config_;
  const RowFormat& format_;
  IndexWriter& writer_;
  Opening& opening_;
  Labels labels_;
  const bool learns_vocabulary_;
  VocabularyCounter counter_;
  IndexMeta meta_;
  Row row_;
  std::uint64_t quarantined_ = 0;
  std::string quarantine_, first_bad_;
};

// The data files as an index lists them.
std::vector<std::string> files_of(const DataConfig& config) {
  if (config.format != "idx") return config.paths;
  std::vector<std::string> files;
  for (std::size_t i = 0; i < std::min(config.paths.size(), config.label_paths.size()); ++i) {
    files.push_back(config.paths[i]);
    files.push_back(config.label_paths[i]);
  }
  return files;
}

std::filesystem::path folder_of(const std::string& path) {
  const auto folder = std::filesystem::path(path).parent_path();
  return folder.empty() ? "." : folder;
}

// The name of an index: depends on everything that makes two indexes differ, except the contents of
// the files. Beside the data it is the same on hosts that have them under another path.
std::string name_of(const DataConfig& config, const Index* train) {
  std::string text = built_by(config) + "\n";
  const auto add = [&](const std::string& path) {
    text +=
        config.index_beside
            ? std::filesystem::path(path).lexically_relative(folder_of(config.paths[0])).string()
            : path;
    text += "\n";
  };
  for (const std::string& path : config.paths) add(path);
  for (const std::string& path : config.label_paths) add(path);
  if (train != nullptr) {
    text += fmt::format("classes {}", train->meta().classes);
    for (const std::string& name : train->meta().class_names) text += "\n" + name;
  }
  return fingerprint_of(std::string_view(text));
}

std::string quarantine_of(const std::string& path) { return path + ".quarantine"; }
std::string lock_of(const std::string& path) { return path + ".lock"; }

// What nobody has written to for so long was left by a build that was killed.
constexpr std::chrono::hours kAbandonedAfter{1};
static_assert(FileWriter::kFreshFor * 10 < kAbandonedAfter, "clocks of hosts differ");

// Does something that may cost a message to a file server: so rarely that it takes a twentieth of
// the time, and after kShownWithin in any case.
class Rarely {
 public:
  template <class Do>
  void run(const Do& act) {
    const MonoTime begin = clock_.now();
    if (begin < due_) return;
    act();
    const MonoTime end = clock_.now();
    due_ = end + std::min<Duration>(19 * (end - begin), kShownWithin);
  }

 private:
  SteadyClock clock_;
  MonoTime due_{};
};

Status build(const DataConfig& config, const Index* train, const std::string& path,
             Opening& opening) {
  // Who can read the data can read what lies beside them.
  ANTDT_TRY(IndexWriter writer,
            IndexWriter::create(path + ".idx", config.index_beside ? 0644 : 0600));
  Rarely rarely;
  const auto listening =
      opening.listen([&](const client::Io& /*io*/) { rarely.run([&] { writer.keep_fresh(); }); });
  if (config.format == "idx") return build_idx(config, writer, opening);
  const std::unique_ptr<RowFormat> format = make_row_format(config);
  return TextPass(config, *format, train, writer, opening).run(quarantine_of(path));
}

std::optional<Index> open_valid(const DataConfig& config, const std::string& path,
                                Opening& opening) {
  auto index = Index::open(path + ".idx", opening);
  if (!index) return {};
  index->set_paths(files_of(config));
  if (index->meta().built_by != built_by(config) || !index->matches_files(opening)) return {};
  if (index->meta().quarantined > 0) {
    index->set_quarantine_file(quarantine_of(path));
    if (::access(index->meta().quarantine_file.c_str(), F_OK) != 0) return {};
  }
  return std::move(*index);
}

Status check_writable(const DataConfig& config, const std::string& directory) {
  Status made = make_directories(directory, config.index_beside ? 0755 : 0700);
  if (made && ::access(directory.c_str(), W_OK) == 0) return {};
  const std::string why = made ? std::string("it is not writable") : made.error().message;
  return fail(ErrorKind::kUsage, "the index of {} cannot be built in {}: {}. {}", config.paths[0],
              directory, why,
              config.index_beside
                  ? "Let somebody build it who may write there, or keep it in each user's cache: "
                    "[data] index = \"cache\""
                  : "XDG_CACHE_HOME says where indexes are kept");
}

// What is written of an index and is not in its place: by the process that has the lock, by those
// that died while they had it, and by processes of hosts that the lock does not reach.
std::vector<std::filesystem::path> unfinished(const std::string& path) {
  const std::filesystem::path index = path + ".idx";
  const std::string begin = index.filename().string() + ".";
  std::vector<std::filesystem::path> found;
  std::error_code error;  // of a directory that is gone by now
  for (std::filesystem::directory_iterator at(index.parent_path(), error), end; !error && at != end;
       at.increment(error)) {
    if (at->path().filename().string().starts_with(begin)) found.push_back(at->path());
  }
  return found;
}

// Some network filesystems (Lustre with localflock, NFS with nolock) keep a lock to one host, so
// what is there may be what another host is writing now. Who writes keeps its file fresh.
void remove_abandoned(const std::string& path) {
  const auto now = std::filesystem::file_time_type::clock::now();
  for (const auto& file : unfinished(path)) {
    std::error_code error;  // whoever may not remove it builds its own all the same
    const auto written = std::filesystem::last_write_time(file, error);
    if (!error && now - written > kAbandonedAfter) std::filesystem::remove(file, error);
  }
}

std::uint64_t unfinished_bytes(const std::string& path) {
  std::uint64_t bytes = 0;
  for (const auto& file : unfinished(path)) {
    std::error_code error;
    const std::uintmax_t size = std::filesystem::file_size(file, error);
    if (!error) bytes += size;
  }
  return bytes;
}

// How far the process is that has the lock. Its lock file says so: of a file that is hashed, or of
// what waits in a file without a name, the unfinished index shows nothing.
struct Position {
  std::uint64_t done = 0, total = 0;
};
constexpr int kDigits = 20;  // always as many, so that each text replaces the last one as a whole

std::string text_of(const Position& position) {
  return fmt::format("{:0{}} {:0{}}\n", position.done, kDigits, position.total, kDigits);
}

Position position_of_builder(const std::string& path) {
  const std::string said = FileLock::said(lock_of(path));
  Position position;
  if (said.size() < 2 * kDigits + 1) return {unfinished_bytes(path), 0};  // nothing is said yet
  const char* const text = said.data();
  std::from_chars(text, text + kDigits, position.done);
  std::from_chars(text + kDigits + 1, text + 2 * kDigits + 1, position.total);
  return position;
}

// Waits for the process that builds the same index. A process that dies releases the lock. Whoever
// waits tells how far that process is, as it may belong to another job.
Result<FileLock> lock(const std::string& path, Opening& opening) {
  constexpr int kLooksEvery = 50;  // turns of 20 ms
  for (int turn = 0;; ++turn) {
    auto taken = FileLock::acquire(lock_of(path));
    if (taken || taken.error().kind != ErrorKind::kRefused) return taken;
    if (turn % kLooksEvery == 0) {
      const Position position = position_of_builder(path);
      opening.tell(kWaitsForIndex, path + ".idx", position.done, position.total);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

}  // namespace

std::string built_by(const DataConfig& config) {
  std::string text = fmt::format("index builder {}, format {}", kBuilderVersion, config.format);
  if (config.quarantine) text += fmt::format(", up to {} bad rows aside", config.quarantine_max);
  if (config.vocabulary) {
    text += fmt::format(", vocabulary of what comes {} times", config.vocabulary_min_count);
  }
  if (config.format != "csv") return text;
  std::string columns;
  for (const Column& column : config.columns) {
    columns += fmt::format("{}\t{}\n", column.name, static_cast<int>(column.kind));
  }
  return text + fmt::format(", separator 0x{:02x}, {} header, {} columns (xxh3 {})",
                            static_cast<unsigned char>(config.separator),
                            config.header ? "with a" : "without a", config.columns.size(),
                            fingerprint_of(std::string_view(columns)));
}

std::unique_ptr<RowFormat> make_row_format(const DataConfig& config) {
  if (config.format == "lines") return std::make_unique<LinesFormat>();
  if (config.format == "criteo") return std::make_unique<CriteoFormat>();
  if (config.format == "csv") {
    return std::make_unique<CsvFormat>(config.columns, config.separator, config.header);
  }
  return nullptr;
}

Result<Index> ensure_index(const DataConfig& config, const std::string& cache_dir,
                           const Index* train, Opening& opening) {
  const std::string directory =
      config.index_beside ? (folder_of(config.paths[0]) / kBeside).string() : cache_dir;
  const std::string path = directory + "/" + name_of(config, train);
  if (auto index = open_valid(config, path, opening)) return std::move(*index);
  ANTDT_RETURN_IF_ERROR(check_writable(config, directory));
  ANTDT_TRY(FileLock held, lock(path, opening));
  Rarely rarely;
  const auto listening = opening.listen([&](const client::Io& io) {
    rarely.run([&] { held.say(text_of({io.done_bytes, io.total_bytes})); });
  });
  if (auto index = open_valid(config, path, opening)) return std::move(*index);
  remove_abandoned(path);
  ANTDT_RETURN_IF_ERROR(build(config, train, path, opening));
  return Index::open(path + ".idx", opening);
}

}  // namespace antdt::data
