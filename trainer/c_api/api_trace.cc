// The functions of antdt.h by which a tracer tells of a script that knows nothing of its job.
#include <sys/resource.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "include/antdt.h"
#include "trainer/c_api/abort_watch.h"
#include "trainer/c_api/handle.h"
#include "trainer/c_api/last_error.h"
#include "trainer/c_api/settings.h"
#include "trainer/client/client.h"
#include "trainer/injected/injected.h"
#include "trainer/loop/accounts/time_account.h"

using namespace antdt;
using namespace antdt::capi;

struct antdt_trace {
  const OfThisProcess owner;
  SteadyClock clock;
  std::unique_ptr<client::Client> client;
  std::unique_ptr<trainer::Injected> injected;  // of the thread that steps
  MonoTime started{};                           // the process
  wire::TimeAccount account;                    // of the thread that steps
  std::uint64_t steps = 0;
};

namespace {

constexpr double kMostSeconds = 1e6;
// Steps that say nothing of a rank's speed: caches, buckets, first allocations.
constexpr std::uint64_t kWarmUp = 5;
Duration said_seconds(double said) { return from_seconds(std::clamp(said, 0.0, kMostSeconds)); }

template <class Call>
int with_trace(antdt_trace* trace, const char* function, Call call) {
  return guarded([&]() -> int {
    if (trace == nullptr) return failed(ANTDT_USAGE, fmt::format("{}: trace is NULL", function));
    if (!trace->owner.here()) return failed(ANTDT_FORKED, trace->owner.forked(function));
    return call();
  });
}

std::string text_of(const char* said) { return said == nullptr ? "" : said; }

// With the children that have ended: a data loader's workers.
std::uint64_t cpu_ms() {
  std::uint64_t ms = 0;
  for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage used{};
    if (getrusage(who, &used) != 0) continue;
    for (const timeval& t : {used.ru_utime, used.ru_stime}) {
      ms += static_cast<std::uint64_t>(t.tv_sec) * 1000 +
            static_cast<std::uint64_t>(t.tv_usec) / 1000;
    }
  }
  return ms;
}

std::string_view cut_to(std::string_view& left, char end) {
  const std::size_t at = std::min(left.find(end), left.size());
  const std::string_view cut = left.substr(0, at);
  left.remove_prefix(std::min(at + 1, left.size()));
  return cut;
}

// Lines of group, number, name and where, with tabs between.
Result<std::vector<wire::TracedCall>> calls_of(std::string_view text) {
  std::vector<wire::TracedCall> calls;
  while (!text.empty()) {
    std::string_view line = cut_to(text, '\n');
    wire::TracedCall call;
    call.group = cut_to(line, '\t');
    const std::string_view number = cut_to(line, '\t');
    const auto [end, error] =
        std::from_chars(number.data(), number.data() + number.size(), call.number);
    if (error != std::errc() || end != number.data() + number.size()) {
      return fail(
          ErrorKind::kUsage,
          "antdt_trace_tell: '{}' is no number of a collective: a line is its group, number, "
          "name and place, with tabs between",
          number);
    }
    call.name = cut_to(line, '\t');
    call.where = line;
    calls.push_back(std::move(call));
  }
  return calls;
}

Result<std::unique_ptr<antdt_trace>> open_trace(Duration timeout) {
  auto made = std::make_unique<antdt_trace>();
  ANTDT_TRY(const client::Environment self, client::Environment::from_process());
  ANTDT_TRY(made->client, client::Client::connect(self, timeout));
  client::Client& client = *made->client;
  const antdt::Member member = client.member();
  ANTDT_TRY(auto injected,
            trainer::Injected::of_job(
                made->clock, client.config_json(), {member.worker, client.host(), member.attempt},
                [&client] { return client.injected(); },
                [&client](double share) { client.set_throttle(share); }));
  made->injected = std::make_unique<trainer::Injected>(std::move(injected));
  made->started = trainer::process_start(made->clock.now());
  client.set_activity("startup");
  return made;
}

}  // namespace

extern "C" {

int antdt_trace_open(uint32_t timeout_ms, antdt_trace** trace) {
  return guarded([&]() -> int {
    if (trace == nullptr) return failed(ANTDT_USAGE, "antdt_trace_open: trace is NULL");
    *trace = nullptr;
    const SignalsBlocked no_signals;
    auto made = open_trace(std::chrono::milliseconds(timeout_ms));
    if (!made) return failed(made.error());
    *trace = made->release();
    return ANTDT_OK;
  });
}

// The first step is what a program needs to get going: its data, connections.
int antdt_trace_step(antdt_trace* trace, uint64_t samples, double data, double compute, double wait,
                     double* added) {
  return with_trace(trace, "antdt_trace_step", [&]() -> int {
    trace->injected->training_began();
    const MonoTime before = trace->clock.now();
    trace->injected->after_data(before - said_seconds(data), trace->steps);
    const MonoTime got = trace->clock.now();
    trace->injected->after_compute(got - said_seconds(compute), trace->steps, samples);
    const MonoTime now = trace->clock.now();
    const Duration data_time = said_seconds(data) + (got - before);
    const Duration compute_time = said_seconds(compute) + (now - got);
    if (added != nullptr) *added = to_seconds(now - before);
    wire::TimeAccount& account = trace->account;
    if (trace->steps++ == 0) {
      account.startup = to_seconds(now - trace->started);
    } else {
      account.data += to_seconds(data_time);
      account.compute += to_seconds(compute_time);
      account.collective_wait += std::clamp(wait, 0.0, kMostSeconds);
    }
    client::BatchTimes times{samples, data_time, compute_time, said_seconds(wait)};
    times.counts = trace->steps > kWarmUp;
    trace->client->report(times);
    trace->client->time_account(account);
    return ANTDT_OK;
  });
}

int antdt_trace_say(antdt_trace* trace, const antdt_trace_state* given) {
  return with_trace(trace, "antdt_trace_say", [&]() -> int {
    const auto state = copy_in("antdt_trace_say", "state", given);
    if (!state) return failed(ANTDT_USAGE, state.error().message);
    wire::Traced said;
    said.rank = state->rank;
    said.world_size = state->world_size;
    said.steps = Step{state->steps};
    said.samples = state->samples;
    said.samples_known = state->samples_known != 0;
    said.collectives = state->collectives;
    said.inside = text_of(state->inside);
    said.where = text_of(state->where);
    said.inside_ms = state->inside_ms;
    said.cpu_ms = cpu_ms();
    said.runs = text_of(state->runs);
    const bool waits = !said.inside.empty();
    trace->client->set_activity(waits               ? "collective_wait"
                                : state->steps == 0 ? "startup"
                                                    : "compute");
    trace->client->tracing().traced(said);
    return ANTDT_OK;
  });
}

int antdt_trace_asked(antdt_trace* trace, uint64_t* number, uint32_t timeout_ms) {
  return with_trace(trace, "antdt_trace_asked", [&]() -> int {
    if (number == nullptr) return failed(ANTDT_USAGE, "antdt_trace_asked: number is NULL");
    const auto wanted =
        trace->client->tracing().stack_wanted(*number, std::chrono::milliseconds(timeout_ms));
    if (!wanted) return failed(wanted.error());
    if (*wanted <= *number) return ANTDT_TIMEOUT;
    *number = *wanted;
    return ANTDT_OK;
  });
}

int antdt_trace_tell(antdt_trace* trace, uint64_t number, int32_t inside, const char* where,
                     const char* stack, const char* calls) {
  return with_trace(trace, "antdt_trace_tell", [&]() -> int {
    auto read = calls_of(text_of(calls));
    if (!read) return failed(read.error());
    trace->client->tracing().stack_told(
        {number, inside != 0, text_of(where), text_of(stack), std::move(*read)});
    return ANTDT_OK;
  });
}

int antdt_trace_on_abort(antdt_trace* trace, int32_t fd, uint32_t stay_ms) {
  return with_trace(trace, "antdt_trace_on_abort", [&]() -> int {
    watch_aborts(fd, std::chrono::milliseconds(stay_ms));
    return ANTDT_OK;
  });
}

void antdt_trace_close(antdt_trace* trace) {
  if (trace == nullptr || !trace->owner.here()) return;
  forget_aborts();
  std::ignore = guarded([&]() -> int {
    wire::Bye bye;
    bye.account = trace->account;
    trace->client->bye(std::move(bye));
    delete trace;
    return ANTDT_OK;
  });
}

}  // extern "C"
