// Writes one seed or more for each binary format: fuzz_seeds DIRECTORY makes
// DIRECTORY/<target>/<name>. Made by the real encoders, so that a changed
// format needs no new files.
#include <fmt/format.h>

#include <numeric>
#include <tuple>
#include <utility>

#include "core/os/fs.h"
#include "core/transport/zmtp.h"
#include "core/wire/codec.h"
#include "ctl/job/job_image.h"
#include "launcher/config/job_config.h"
#include "shard_server/accounts/accounts.h"
#include "shard_server/ledger/record_codec.h"
#include "tests/fuzz/support/gaia_elements.h"
#include "tests/fuzz/support/ledger_data.h"
#include "tests/fuzz/support/ps_tables.h"
#include "tests/fuzz/support/wire_messages.h"
#include "tests/trainer/data/packed.h"
#include "tests/trainer/ps/stepped.h"
#include "trainer/collective/handshake.h"
#include "trainer/data/content/points.h"
#include "trainer/data/index/index.h"
#include "trainer/ps/replica/copied.h"
#include "trainer/ps/replica/state_copy.h"
#include "trainer/ps/rows/rows.h"
#include "trainer/ps/rows/slice_image.h"
#include "trainer/sync/gaia/update.h"
#include "trainer/worker/step_slot.h"

namespace antdt::fuzz {
namespace {

using namespace antdt::shard_server;

class Seeds {
 public:
  explicit Seeds(std::string directory) : directory_(std::move(directory)) {}
  void add(const std::string& target, const std::string& name, std::string_view bytes) {
    const std::string path = directory_ + "/" + target;
    const Status made = make_directories(path);
    std::FILE* file = made ? std::fopen((path + "/" + name).c_str(), "wb") : nullptr;
    const bool whole =
        file != nullptr && std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
    if (file == nullptr || std::fclose(file) != 0 || !whole) failed_ = true;
  }
  [[nodiscard]] bool failed() const { return failed_; }

 private:
  std::string directory_;
  bool failed_ = false;
};

// ------------------------------------------------------------------ messages

// Gives every field a value, and every list one item.
struct Fill {
  template <class T>
  void operator()(std::string_view, T& value) {
    if constexpr (wire::detail::HasFields<T>) {
      T::fields(value, *this);
    } else if constexpr (wire::detail::IsVector<T>::value) {
      (*this)("", value.emplace_back());
    } else if constexpr (wire::detail::IsOptional<T>::value) {
      (*this)("", value.emplace());
    } else if constexpr (std::is_same_v<T, std::string>) {
      value = "a text";
    } else if constexpr (std::is_arithmetic_v<T>) {
      value = static_cast<T>(1);
    }
  }
};

template <class T>
std::string filled() {
  T message{};
  Fill fill;
  T::fields(message, fill);
  return wire::encode(message);
}

template <std::size_t... I>
void add_messages(Seeds& seeds, std::index_sequence<I...>) {
  (seeds.add("wire", fmt::format("filled-{}", I),
             static_cast<char>(I) + filled<std::tuple_element_t<I, WireMessages>>()),
   ...);
  const std::string envelope = filled<wire::Envelope>();
  seeds.add("wire", "packet",
            fmt::format("\xff{}{}", static_cast<char>(envelope.size()), envelope));
}

// The bytes of a peer on a local socket; the first byte says how they are cut.
void add_connection(Seeds& seeds) {
  const std::string heartbeat("\4\11\4PING\0\144hi", 11);
  std::string said = "\x06" + heartbeat;
  transport::append_zmtp(said, {"", "", "envelope", std::string(300, 'b')});
  seeds.add("zmtp", "packet", said);
  seeds.add("zmtp", "opening", "\x07" + transport::zmtp_opening());
}

// -------------------------------------------------------------------- ledger

constexpr Member kFirst{{'w', 0}, Attempt{1}};
constexpr Member kSecond{{'w', 1}, Attempt{1}};

ledger::FetchAnswered fetch(Member member, std::uint64_t seq, std::uint64_t place,
                            std::uint32_t want) {
  ledger::FetchAnswered said;
  said.member = member;
  said.seq = seq;
  said.place = place;
  said.retry_ms = want;
  return said;
}

// The events of a short job, as ledger_events takes them.
std::vector<ledger::Record> story() {
  const Generation one{1}, two{2};
  return {
      ledger::JobDeclared{1, 100, true},
      ledger::DeliveryChosen{Delivery::kAtMostOnce},
      ledger::PhaseOpened{1, PhaseKind::kTrain, Epoch{0}},
      ledger::GenerationSettled{one, {}, {kFirst, kSecond}},
      ledger::SharesPlanned{{{kFirst.worker, 4, 8}, {kSecond.worker, 4, 8}}},
      fetch(kFirst, 1, 0, 60),
      fetch(kSecond, 1, 0, 60),
      ledger::ProgressReported{kFirst, one, 1, 8},
      fetch(kSecond, 2, 20, 60),
      ledger::RecordsSkipped{kSecond, {{20, 23, "torn"}, {30, 31, "too long"}}},
      ledger::RecallSettled{kFirst, one, 0, 1, 20},
      ledger::LateReturned{fetch(kFirst, 2, 8, 4), 5, false},
      ledger::SkipDeclared{1, {90, 95}, "broken"},
      ledger::GenerationSettled{two, {{kFirst, 10, true}, {kSecond, 22, false}}, {kSecond}},
      ledger::MemberAdmitted{{{'w', 2}, Attempt{3}}, two},
      fetch(kSecond, 3, 0, 60),
      ledger::MemberLost{{{'w', 2}, Attempt{3}}},
      ledger::MemberLeft{{{'w', 3}, Attempt{1}}},
      ledger::PhaseOpened{2, PhaseKind::kEval, Epoch{0}},
      ledger::JobFinished{},
  };
}

// The same where training records are pinned to domains (pinned_ledger_config) and the evaluation,
// which comes first here, is not.
std::vector<ledger::Record> pinned_story() {
  constexpr DomainNumber kEu{1}, kUs{2};
  const Member third{{'w', 2}, Attempt{1}};
  const Generation one{1}, two{2};
  return {
      ledger::JobDeclared{1, 100, true},
      ledger::DataPinned{pinned_ledger_config().train.pins},
      ledger::GenerationSettled{one, {}, {kFirst, kSecond}, {kEu, kUs}},
      ledger::PhaseOpened{1, PhaseKind::kEval, Epoch{0}, 20},
      fetch(kFirst, 1, 0, 60),
      fetch(kSecond, 1, 0, 60),
      ledger::SkipDeclared{1, {0, 20}, "broken"},
      fetch(kFirst, 2, 5, 0),
      fetch(kSecond, 2, 4, 0),
      ledger::PhaseOpened{2, PhaseKind::kTrain, Epoch{0}, 100},
      ledger::MemberAdmitted{third, one, kEu},
      fetch(kFirst, 3, 0, 60),
      fetch(kSecond, 3, 0, 60),
      fetch(third, 1, 0, 60),
      ledger::ProgressReported{kFirst, one, 2, 8},
      ledger::MemberLost{third},
      ledger::SkipDeclared{2, {55, 65}, "in both domains"},
      ledger::GenerationSettled{two, {{kFirst, 10, true}, {kSecond, 12, false}}, {kSecond}, {kUs}},
      fetch(kSecond, 4, 0, 60),
      ledger::MemberAdmitted{{kFirst.worker, Attempt{2}}, two, kEu},
      fetch({kFirst.worker, Attempt{2}}, 1, 0, 60),
      fetch(kSecond, 5, 3, 60),
  };
}

void append_part(std::string& bytes, const std::string& part) {
  bytes += static_cast<char>(part.size());
  bytes += static_cast<char>(part.size() >> 8);
  bytes += part;
}

// Accounts of a job that promises exactly once and whose program skips records: some are committed,
// some only held.
void add_skips(Seeds& seeds) {
  shard_server::Accounts accounts;
  const auto apply = [&accounts](const auto& record) {
    (void)accounts.apply(encode_record(record));
  };
  ledger::FetchAnswered granted = fetch(kFirst, 1, 0, 0);
  granted.granted = {{{0, 20}, 0}, {{60, 80}, 0}};
  apply(ledger::JobDeclared{1, 100, true});
  apply(ledger::MemberAdmitted{kFirst, Generation{1}});
  apply(ledger::PhaseOpened{1, PhaseKind::kTrain, Epoch{0}});
  apply(granted);
  apply(ledger::RecordsSkipped{kFirst, {{15, 25, "torn"}, {30, 31, "too long"}}});
  apply(ledger::ProgressReported{kFirst, Generation{1}, 1, 22});
  seeds.add("accounts", "skips", accounts.image());
}

// The journal of a ledger that heard a story, and its images on the way.
class Scribe {
 public:
  // `name`: before the names of its seeds.
  Scribe(Seeds& seeds, std::string name, const LedgerConfig& config)
      : seeds_(seeds), name_(std::move(name)), ledger_(config) {}

  void hear(const ledger::Record& said) {
    const std::string bytes = std::visit([](const auto& s) { return encode_record(s); }, said);
    append_part(events_, bytes);
    seeds_.add("ledger_record", fmt::format("{}said-{}", name_, number_), bytes);
    for (const ledger::Effect& effect :
         std::visit([this](const auto& s) { return step(s); }, said)) {
      if (const auto* persist = std::get_if<ledger::PersistRecord>(&effect)) keep(persist->bytes);
    }
    seeds_.add("ledger_image", fmt::format("{}after-{}", name_, number_), ledger_.image());
    seeds_.add("accounts", fmt::format("{}after-{}", name_, number_), accounts_.image());
    ++number_;
  }
  void finish() {
    seeds_.add("ledger_events", name_ + "story", events_);
    seeds_.add("ledger_replay", name_ + "journal", journal_);
    if (auto rewound = ledger_.rewind(Lineage{1}, ledger_.image(), accounts_.image())) {
      keep(rewound->bytes);
    }
    seeds_.add("ledger_replay", name_ + "rewound", journal_);
  }

 private:
  template <class E>
  ledger::Effects step(const E& event) {
    if constexpr (std::is_same_v<E, ledger::FetchAnswered>) {
      return fetch_of(event, 0);
    } else if constexpr (std::is_same_v<E, ledger::LateReturned>) {
      return fetch_of(event.answered, event.records);
    } else if constexpr (std::is_same_v<E, ledger::RecordsSkipped>) {
      return skips_of(event);
    } else if constexpr (std::is_constructible_v<ledger::Input, E>) {
      ledger::Effects effects;
      ledger_.step(event, MonoTime{}, effects);
      return effects;
    } else {
      return {};
    }
  }
  ledger::Effects fetch_of(const ledger::FetchAnswered& event, std::uint64_t late) {
    const wire::Fetch request{ledger_.phase().number, event.place, event.retry_ms, {}, late};
    const auto holder = ledger_.holders().find(event.member.worker);
    if (holder == ledger_.holders().end()) return {};
    return step(
        ledger::FetchRequested{event.member, holder->second.generation, event.seq, request});
  }
  ledger::Effects skips_of(const ledger::RecordsSkipped& event) {
    const auto holder = ledger_.holders().find(event.member.worker);
    if (holder == ledger_.holders().end()) return {};
    wire::Fetch request{ledger_.phase().number, holder->second.place, 0, {}};
    request.skipped = event.records;
    return step(ledger::FetchRequested{event.member, holder->second.generation,
                                       holder->second.last.seq + 1, request});
  }
  void keep(const std::string& record) {
    append_part(journal_, record);
    seeds_.add("ledger_record", fmt::format("{}kept-{}", name_, kept_++), record);
    (void)accounts_.apply(record);
  }

  Seeds& seeds_;
  std::string name_;
  Ledger ledger_;
  Accounts accounts_;
  std::string events_, journal_;
  int number_ = 0, kept_ = 0;
};

// ---------------------------------------------------------------------- data

void add_data(Seeds& seeds) {
  data::IndexMeta meta;
  meta.files.push_back({"data.csv", 60, 1, "00", "00", 0, 2});
  meta.records = 2;
  meta.class_names = {"no", "yes"};
  meta.classes = 2;
  meta.vocabulary_sizes = {1, 2};
  seeds.add("index", "text", "\x02\x03" + encode_meta(meta));
  seeds.add("index", "raw",
            "r" + std::string(data::kIndexMagic) + std::string(32, '\0') +
                std::string(data::kIndexMagic));
  const std::string text = "one line\nanother line\r\n\nthe last";
  const std::string member = data::gzip(text);
  const std::string frame = data::zstd(text);
  data::PointsBuilder points(data::Packing::kGzip);
  points.add({0, 0, false, 0, {}}, {});
  points.add({9, 18, true, 3, {}}, "one line\n");
  const std::string encoded = points.encode(text.size());
  for (const auto& [name, file] :
       {std::pair{"plain", text}, {"gzip", member + member}, {"zstd", frame + frame}}) {
    std::string seed{static_cast<char>(file.size()), '\0'};
    seeds.add("content", name, seed.append(file).append(encoded));
  }
  const std::string pixels(
      "\0\0\x08\x03\0\0\0\x02\0\0\0\x02\0\0\0\x01"
      "abcd",
      20);
  const std::string labels("\0\0\x08\x01\0\0\0\x02\x01\x09", 10);
  std::string both;
  append_part(both, pixels);
  seeds.add("idx", "two-images", both + labels);
}

void add_job(Seeds& seeds) {
  const auto config = launcher::load_text(
      "schema = 1\njob.name = 'a'\nroles.worker.count = 2\ndata = {format = 'index', records = 9}\n"
      "batch.global = 4\n",
      "/nowhere/job.toml");
  if (config) seeds.add("job_json", "small", launcher::to_json(*config));
}

void add_slots(Seeds& seeds) {
  std::string gathered;
  for (const bool leaving : {false, true}) {
    const worker::StepSlotBytes slot =
        encode(worker::StepSlot{10, 5, 5, 0.5, PlanVersion{2}, 1, true, leaving, true});
    gathered.append(reinterpret_cast<const char*>(slot.data()), slot.size());
  }
  seeds.add("step_slot", "two-members", gathered);
}

// Handshakes of a guessing peer and of an earlier release; the first byte is the fuzzer's own.
void add_handshake(Seeds& seeds) {
  const trainer::Handshake::Self guesses{{}, 1, 4, false};
  const std::string hello = trainer::Handshake::dialling(guesses, 2, crypto::Nonce{}).opening();
  const std::string earlier = std::string("DTcoll1\0", 8) + std::string(24, '\1');
  for (const char how : {'\0', '\1'}) {
    const std::string name = how == '\0' ? "-to-a-dialler" : "-to-a-listener";
    seeds.add("handshake", "hello" + name, how + hello);
    seeds.add("handshake", "earlier" + name, how + earlier);
  }
}

void add_slice(Seeds& seeds) {
  ps::Store store(ps_tables(), 1);
  std::vector<std::uint64_t> keys(300);
  std::iota(keys.begin(), keys.end(), 1);
  store.update(0, keys, std::vector<float>(2 * keys.size(), 0.5F), 1);
  store.update(1, keys, std::vector<float>(4 * keys.size(), 0.5F), 1);
  std::string bytes;
  ps::encode_slice(store, kSlice, [&](std::string_view piece) { bytes += piece; });
  seeds.add("ps_slice", "some-rows", bytes);
}

// Few, many and all of the elements changed, so that a message of each form is there.
void add_gaia_updates(Seeds& seeds) {
  namespace gaia = sync::gaia;
  gaia::Encoder encoder;
  for (const std::size_t changed : {std::size_t{3}, std::size_t{100}, std::size_t{kGaiaElements}}) {
    std::vector<float> known(kGaiaElements, 1);
    std::vector<float> values = known;
    for (std::size_t i = 0; i < changed; ++i) values[i * (kGaiaElements / changed)] += 0.5F;
    std::vector<std::byte> message;
    encoder.encode({1, 2, false}, kGaiaFirst, values, known, 0.01F, message);
    seeds.add("gaia_update", fmt::format("{}-changed", changed),
              {reinterpret_cast<const char*>(message.data()), message.size()});
  }
}

// A server in the middle of a step and of a checkpoint, and what its primary copies in that state.
void add_state(Seeds& seeds) {
  using namespace antdt::ps;
  ServerNode node(ps_start());
  const std::vector<std::uint64_t> keys{1, 2, 3};
  const std::vector<float> ones(2 * keys.size(), 1);
  const std::vector<wire::PsRows> gradients{{0, to_bytes(keys), to_bytes(ones)}};
  std::uint64_t seq = 0;
  std::string copied;
  const auto hear = [&](const node::Input& event) {
    std::ignore = stepped(node, event);
    copied += '\1';
    append_part(copied, wire::encode(to_wire({1, 0, event})));
  };
  const auto ask = [&](std::uint32_t worker, node::Request request) {
    const Member member{{'w', worker}, Attempt{1}};
    hear(node::RequestHeard{{"", member, ++seq}, Generation{1}, std::move(request)});
  };
  const auto add = [&](const std::string& name) {
    std::string bytes;
    write_state(node, [&](const StatePiece& piece) {
      bytes += piece.last ? '\2' : '\0';
      bytes += static_cast<char>(piece.part);
      append_part(bytes, piece.bytes);
    });
    seeds.add("ps_state", name, bytes);
    seeds.add("ps_state", name + "-and-what-it-heard", bytes + std::exchange(copied, {}));
  };
  add("nothing");
  ask(0, wire::PsOpen{7, {{"t", 2, "adam", 0.1, 0, 0, "normal", 1}}});
  ask(0, wire::PsPut{gradients});
  for (const std::uint32_t worker : {0U, 1U}) ask(worker, wire::PsPush{1, 0, gradients});
  ask(0, wire::PsCommit{1, 0, 1, 0, 4, 2});
  add("half-a-step");
  ask(1, wire::PsCommit{1, 0, 1, 0, 4, 2});
  ask(0, wire::PsPush{2, 1, gradients});
  hear(node::SlicesOrdered{{1, "checkpoints/1"}});
  hear(node::WritingBegun{1, 5, {}});
  add("a-checkpoint-begun");
  hear(node::DecisionsApplied{1, {1}});
  hear(node::SlicesWritten{1, {{"slice-01.rows", 9, "00"}}, {}});
  ask(1, wire::PsIdle{});
  add("a-checkpoint-written");
}

}  // namespace
}  // namespace antdt::fuzz

int main(int argc, char** argv) {
  using namespace antdt::fuzz;
  if (argc != 2) {
    fmt::print(stderr, "usage: fuzz_seeds DIRECTORY\n");
    return 2;
  }
  Seeds seeds(argv[1]);
  add_messages(seeds, std::make_index_sequence<std::tuple_size_v<WireMessages>>());
  add_connection(seeds);
  seeds.add("job_image", "filled", filled<antdt::ctl::JobImage>());
  for (const auto& [name, told, config] :
       {std::tuple("", story(), ledger_config()),
        std::tuple("pinned-", pinned_story(), pinned_ledger_config())}) {
    Scribe scribe(seeds, name, config);
    for (const antdt::shard_server::ledger::Record& said : told) scribe.hear(said);
    scribe.finish();
  }
  add_skips(seeds);
  add_data(seeds);
  add_job(seeds);
  add_slots(seeds);
  add_slice(seeds);
  add_handshake(seeds);
  add_gaia_updates(seeds);
  add_state(seeds);
  return seeds.failed() ? 1 : 0;
}
