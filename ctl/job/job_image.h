// What the job daemon remembers beside the ledger, as one small journal
// record that is written whole whenever it changed; the last one counts.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/ids.h"
#include "core/wire/drill_messages.h"
#include "core/wire/messages.h"
#include "ctl/devices.h"
#include "ctl/lifecycle.h"
#include "ctl/membership.h"
#include "ctl/server_group.h"

namespace antdt::ctl {

inline constexpr std::string_view kImageRecord = "job";

struct ImageAction {
  double time_s = 0;
  std::string kind, target, reason, outcome;
  template <class Self, class V>
  static void fields(Self& m, V& v) {
    v("time_s", m.time_s);
    v("kind", m.kind);
    v("target", m.target);
    v("reason", m.reason);
    v("outcome", m.outcome);
  }
};
struct ImageEpoch {
  double train_loss = 0, seconds = 0;
  std::uint64_t samples = 0;
  bool evaluated = false;
  std::uint64_t eval_records = 0;
  std::optional<double> auc, log_loss, accuracy;
  template <class Self, class V>
  static void fields(Self& m, V& v) {
    v("train_loss", m.train_loss);
    v("seconds", m.seconds);
    v("samples", m.samples);
    v("evaluated", m.evaluated);
    v("eval_records", m.eval_records);
    v("auc", m.auc);
    v("log_loss", m.log_loss);
    v("accuracy", m.accuracy);
  }
};

struct ImageDeath {
  Epoch epoch;
  WorkerId worker;
  Attempt attempt;
  std::vector<std::uint64_t> bounds;  // from, to, from, to, ...
  template <class Self, class V>
  static void fields(Self& m, V& v) {
    v("epoch", m.epoch);
    v("worker", m.worker);
    v("attempt", m.attempt);
    v("bounds", m.bounds);
  }
};

struct JobImage {
  LifecycleImage lifecycle;
  MembershipImage membership;
  ServerGroupImage servers;
  wire::Plan plan;  // newest
  std::vector<ImageAction> actions;
  std::vector<ImageEpoch> epochs;
  std::vector<ImageDeath> deaths;  // see shard_server/suspects.h
  std::uint64_t cut_phase = 0;     // the ledger's when the servers' last cut was ordered
  wire::Injected injected;         // newest
  std::vector<Devices::Said> devices;
  template <class Self, class V>
  static void fields(Self& m, V& v) {
    v("lifecycle", m.lifecycle);
    v("membership", m.membership);
    v("servers", m.servers);
    v("plan", m.plan);
    v("actions", m.actions);
    v("epochs", m.epochs);
    v("deaths", m.deaths);
    v("cut_phase", m.cut_phase);
    v("injected", m.injected);
    v("devices", m.devices);
  }
};

}  // namespace antdt::ctl
