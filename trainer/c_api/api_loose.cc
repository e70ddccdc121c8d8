// The functions of antdt.h for programs that only take records and report.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "core/permutation.h"
#include "include/antdt.h"
#include "trainer/c_api/data_progress.h"
#include "trainer/c_api/handle.h"
#include "trainer/c_api/last_error.h"
#include "trainer/c_api/program/skipped.h"
#include "trainer/c_api/settings.h"
#include "trainer/client/loose.h"

using namespace antdt;
using namespace antdt::capi;

struct antdt_loose {
  const OfThisProcess owner;
  std::unique_ptr<client::Loose> loose;
  const OpenClient open{nullptr};  // it joins when it is opened
  About about;
  std::vector<std::uint64_t> records;  // of the last work
  std::uint64_t phase = 0;             // likewise
  std::uint64_t epoch = 0;
  std::unique_ptr<Skipped> skipped;
  bool over = false;
};

namespace {

template <class Call>
int with_loose(antdt_loose* loose, const char* function, Call call) {
  return guarded([&]() -> int {
    if (loose == nullptr) return failed(ANTDT_USAGE, fmt::format("{}: loose is NULL", function));
    if (!loose->owner.here()) return failed(ANTDT_FORKED, loose->owner.forked(function));
    return call();
  });
}

void add_record_numbers(const wire::Piece& piece, std::vector<std::uint64_t>& numbers) {
  const Permutation order(piece.shard_records, piece.order_seed);
  for (std::uint64_t position = piece.from; position < piece.to; ++position) {
    numbers.push_back(piece.shard_first + (piece.shuffled ? order(position) : position));
  }
}

Duration seconds(double said) { return from_seconds(std::clamp(said, 0.0, 1e6)); }

}  // namespace

extern "C" {

int antdt_loose_open(const antdt_options* options, antdt_loose** loose) {
  return guarded([&]() -> int {
    if (loose == nullptr) return failed(ANTDT_USAGE, "antdt_loose_open: loose is NULL");
    *loose = nullptr;
    const auto settings = Settings::of(options);
    if (!settings) return failed(ANTDT_USAGE, settings.error().message);
    const SignalsBlocked no_signals;
    auto connection = connect(*settings, false);
    if (!connection) return failed(connection.error());
    auto made = std::make_unique<antdt_loose>();
    made->about = About(*connection->client, connection->in_job);
    made->skipped = std::make_unique<Skipped>(connection->client->run_dir(),
                                              to_string(connection->client->member().worker));
    made->loose = client::Loose::start(std::move(connection->client), connection->data);
    *loose = made.release();
    return ANTDT_OK;
  });
}

int antdt_loose_next(antdt_loose* loose, uint64_t max_records, antdt_work* work,
                     uint32_t timeout_ms) {
  return with_loose(loose, "antdt_loose_next", [&]() -> int {
    if (const int wrong = check_out("antdt_loose_next", "work", work); wrong != ANTDT_OK) {
      return wrong;
    }
    if (max_records == 0) {
      return failed(ANTDT_USAGE, "antdt_loose_next: max_records is 0: ask for one at least");
    }
    loose->records.clear();
    if (!loose->over) {
      auto next = loose->loose->next(max_records, std::chrono::milliseconds(timeout_ms));
      if (!next) return failed(next.error());
      if (next->status == client::TakeStatus::kWait) return ANTDT_TIMEOUT;
      loose->over = next->status == client::TakeStatus::kEnd;
      if (!loose->over) {
        loose->phase = next->work.phase;
        loose->epoch = next->work.epoch.value;
        for (const wire::Piece& piece : next->work.pieces) {
          add_record_numbers(piece, loose->records);
        }
        const antdt_work said{sizeof(antdt_work), next->work.evaluation ? 1 : 0,
                              next->work.epoch.value, loose->records.data(), loose->records.size()};
        return copy_out("antdt_loose_next", "work", said, work);
      }
    }
    return failed(ANTDT_ENDED, "antdt_loose_next: the job is over, or this worker is to leave");
  });
}

int antdt_loose_skip(antdt_loose* loose, uint64_t record, const char* reason) {
  return with_loose(loose, "antdt_loose_skip", [&]() -> int {
    const auto found = std::ranges::find(loose->records, record);
    if (found == loose->records.end()) {
      return failed(ANTDT_USAGE, fmt::format("antdt_loose_skip: record {} is not one of the work "
                                             "in hand",
                                             record));
    }
    const std::string why = kept_reason(reason);
    const Status added = loose->skipped->add(record, loose->phase, loose->epoch, why);
    if (!added) return failed(added.error());
    loose->loose->skip(static_cast<std::uint64_t>(found - loose->records.begin()), why);
    return ANTDT_OK;
  });
}

int antdt_loose_report(antdt_loose* loose, double data, double compute, double wait) {
  return with_loose(loose, "antdt_loose_report", [&]() -> int {
    loose->loose->report(seconds(data), seconds(compute), seconds(wait));
    return ANTDT_OK;
  });
}

int antdt_loose_describe(antdt_loose* loose, antdt_about* about) {
  return with_loose(loose, "antdt_loose_describe", [&]() -> int {
    return copy_out("antdt_loose_describe", "about", loose->about.fields(), about);
  });
}

void antdt_loose_close(antdt_loose* loose) {
  if (loose == nullptr || !loose->owner.here()) return;
  std::ignore = guarded([&]() -> int {
    delete loose;
    return ANTDT_OK;
  });
}

}  // extern "C"
