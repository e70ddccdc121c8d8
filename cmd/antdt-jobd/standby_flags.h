// The command line of a job daemon that stands by.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "core/os/fs.h"
#include "core/schema/etcd_address.h"
#include "jobd/standby/standby.h"

namespace antdt {

// The flags of a job daemon that stands by, as jobd/standby/standby_desk.cc writes them.
struct StandbyFlags {
  jobd::StandbyOptions standby;
  std::string store;

  void add_to(CLI::App& app) {
    EtcdAddress& etcd = standby.etcd;
    app.add_option("--standby", standby.journal,
                   "Wait until nobody runs the job of this name in etcd, and go on with it");
    app.add_option("--keys", standby.keys, "With --standby: cluster.keys of the job");
    app.add_option("--store", store, "With --standby: cluster.store of the job");
    app.add_option("--store-ca", etcd.ca, "The same for cluster.store_ca");
    app.add_option("--store-cert", etcd.certificate, "The same for cluster.store_cert");
    app.add_option("--store-key", etcd.key, "The same for cluster.store_key");
    app.add_option("--store-user", etcd.user, "The same for cluster.store_user");
    app.add_option("--store-password-file", etcd.password_file,
                   "The same for cluster.store_password_file");
    app.add_option("--store-prefix", etcd.prefix, "The same for cluster.store_prefix");
  }
  // The host of a job daemon that stands by may not have seen the run before.
  [[nodiscard]] Status make_run_directory(const std::string& run_dir) const {
    return standby.journal.empty() ? Status() : make_directories(run_dir, 0700);
  }
  // While it stood by, as happens when the job is over.
  [[nodiscard]] bool was_ended(const Error& error) const {
    return !standby.journal.empty() && error.kind == ErrorKind::kAborted;
  }
  Result<std::unique_ptr<jobd::JobDaemon>> begin(EventLoop& loop, const Clock& clock,
                                                 transport::Context& context,
                                                 jobd::Options options) {
    if (standby.journal.empty()) {
      return jobd::JobDaemon::open(loop, clock, context, std::move(options));
    }
    ANTDT_TRY(standby.etcd.members, etcd_members(store));
    const char* const id = std::getenv("ANTDT_WORKER_ID");
    const auto own = parse_worker_id(id == nullptr ? "" : id);
    options.standby = own ? own->index : 0;
    return jobd::stand_by(loop, clock, context, std::move(options), standby);
  }
};

}  // namespace antdt
