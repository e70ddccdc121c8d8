#include "shard_server/history/series_table.h"

#include <algorithm>
#include <map>

#include "shard_server/archive.h"

namespace antdt::shard_server {

template <class Archive>
void io(Archive& a, typename Archive::template Ref<WorkerMoment> x) {
  a(x.member, x.batches, x.samples, x.data_us, x.compute_us, x.wait_us, x.micro_batch,
    x.accumulation, x.verdict, x.cause, x.severity);
}
template <class Archive>
void io(Archive& a, typename Archive::template Ref<Moment> x) {
  a(x.from_s, x.seconds, x.step, x.samples_done, x.loss, x.workers);
}

std::string encode_moment(const Moment& moment) {
  Writer out;
  out(moment);
  return out.take();
}

Result<Moment> decode_moment(std::string_view bytes) {
  Reader in(bytes);
  Moment moment;
  in(moment);
  if (in.ok() && in.at_end()) return moment;
  return fail(ErrorKind::kCorrupt, "what workers measured cannot be read");
}

void add_moment(Moment& to, const Moment& later) {
  std::vector<WorkerMoment> both;
  both.reserve(std::max(to.workers.size(), later.workers.size()));
  auto a = to.workers.begin();
  auto b = later.workers.begin();
  while (a != to.workers.end() || b != later.workers.end()) {
    const bool has_a = a != to.workers.end();
    const bool has_b = b != later.workers.end();
    if (has_a && (!has_b || a->member.worker < b->member.worker)) {
      both.push_back(std::move(*a++));
      continue;
    }
    WorkerMoment sum = *b++;
    if (has_a && a->member.worker == sum.member.worker) {
      sum.batches += a->batches;
      sum.samples += a->samples;
      sum.data_us += a->data_us;
      sum.compute_us += a->compute_us;
      sum.wait_us += a->wait_us;
      ++a;
    }
    both.push_back(std::move(sum));
  }
  to.workers = std::move(both);
  to.seconds += later.seconds;
  to.step = later.step;
  to.samples_done = later.samples_done;
  to.loss = later.loss;
}

namespace {

// Reads a query's single row with a single number, or returns `otherwise`.
Result<std::uint64_t> only_number(Statement& statement, std::uint64_t otherwise) {
  std::uint64_t value = otherwise;
  while (true) {
    ANTDT_TRY(const bool has_row, statement.next());
    if (!has_row) return value;
    value = statement.number(0);
  }
}

Status only_ran(Result<int> result) {
  if (result) return {};
  return tl::unexpected<Error>(result.error());
}

}  // namespace

Status SeriesTable::create(Database& db) {
  return db.execute("CREATE TABLE IF NOT EXISTS series(bucket INTEGER PRIMARY KEY, body BLOB)");
}

Result<SeriesTable> SeriesTable::open(Database& db) {
  ANTDT_TRY(Statement width, db.prepare("SELECT value FROM meta WHERE key='series_width_s'"));
  ANTDT_TRY(Statement rows, db.prepare("SELECT count(*) FROM series"));
  ANTDT_TRY(Statement all, db.prepare("SELECT bucket,body FROM series"));
  ANTDT_TRY(Statement find, db.prepare("SELECT body FROM series WHERE bucket=?1"));
  ANTDT_TRY(Statement put, db.prepare("INSERT OR REPLACE INTO series VALUES(?1,?2)"));
  ANTDT_TRY(Statement clear, db.prepare("DELETE FROM series"));
  ANTDT_TRY(Statement set_width,
            db.prepare("INSERT OR REPLACE INTO meta VALUES('series_width_s',?1)"));
  SeriesTable table(std::move(width), std::move(rows), std::move(all), std::move(find),
                    std::move(put), std::move(clear), std::move(set_width));
  ANTDT_RETURN_IF_ERROR(table.reload());
  return table;
}

Status SeriesTable::reload() {
  ANTDT_TRY(width_, only_number(read_width_, 1));
  ANTDT_TRY(rows_, only_number(count_, 0));
  width_ = std::max<std::uint64_t>(width_, 1);
  return {};
}

Status SeriesTable::write(std::uint64_t bucket, const Moment& moment) {
  workers_ = std::max(workers_, moment.workers.size());
  const std::string body = encode_moment(moment);
  return only_ran(put_.bind(1, bucket).bind(2, body).run());
}

// If a power failure took the newest rows, a job whose clock went on may write a bucket a second
// time. Both contents are true, so they are added.
Status SeriesTable::put(const Moment& moment) {
  const double from_s = std::clamp(moment.from_s, 0.0, 1e15);
  const std::uint64_t bucket = static_cast<std::uint64_t>(from_s) / width_;
  find_.bind(1, bucket);
  ANTDT_TRY(const bool known, find_.next());
  if (known) {
    auto sum = decode_moment(find_.bytes(0));
    ANTDT_TRY(const bool more, find_.next());
    static_cast<void>(more);
    if (!sum) return tl::unexpected<Error>(sum.error());
    add_moment(*sum, moment);
    ANTDT_RETURN_IF_ERROR(write(bucket, *sum));
  } else {
    ANTDT_RETURN_IF_ERROR(write(bucket, moment));
    ++rows_;
  }
  return rows_ > most_moments(workers_) ? halve() : Status{};
}

Status SeriesTable::halve() {
  std::map<std::uint64_t, Moment> pairs;
  while (true) {
    ANTDT_TRY(const bool has_row, all_.next());
    if (!has_row) break;
    const std::uint64_t bucket = all_.number(0) / 2;
    ANTDT_TRY(Moment moment, decode_moment(all_.bytes(1)));
    const auto [pair, first] = pairs.try_emplace(bucket, std::move(moment));
    if (!first) add_moment(pair->second, moment);
  }
  ANTDT_RETURN_IF_ERROR(only_ran(clear_.run()));
  for (const auto& [bucket, moment] : pairs) ANTDT_RETURN_IF_ERROR(write(bucket, moment));
  width_ *= 2;
  rows_ = pairs.size();
  return only_ran(set_width_.bind(1, width_).run());
}

}  // namespace antdt::shard_server
