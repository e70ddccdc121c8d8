// Keys of job.toml: the job, its cluster and its roles.
#include "core/checkpoint/model_slices.h"
#include "core/schema/key_table.h"

namespace antdt::schema::key_table {

const std::vector<Key>& job() {
  using enum KeyType;
  static const std::vector<Key> keys = {
      {"schema", kInteger, "", "the version of this file's format: 1", {1, 1}},

      {"job.name", kText, "", "name of the job: letters, digits, '-', '_' and '.'"},
      {"job.epochs", kInteger, "1", "passes over the training data", {1, 1e6}},
      {"job.seed", kInteger, "1", "seed of the records' order and the first parameters", {0, kAny}},

      {"cluster.hosts", kTexts, "[]",
       "agents to run the workers, as \"host\" or \"host:port\" (default port 7700), an IPv6 "
       "address in brackets if a port follows; none: this machine"},
      {"cluster.interface", kText, "\"\"",
       "network interface for what workers and parameter servers send one another; empty: that of "
       "the host's address in cluster.hosts"},
      {"cluster.ports", kText, "\"\"",
       "ports that workers and parameter servers listen on for one another, as \"29400-29999\"; "
       "empty: "
       "any free one"},
      {"cluster.keys", kDirectory, "\"~/.config/antdt\"",
       "directory with job.key and agents/, made by antdt keygen"},
      {"cluster.encrypt", kBoolean, "false",
       "the workers of an all-reduce encrypt what they send one another; they prove who they are "
       "in "
       "any case, and what goes to and from parameter servers over tcp is always encrypted"},
      {"cluster.store", kText, "\"\"",
       "members of an etcd that keeps the job's journal, as "
       "\"etcd://10.0.0.1:2379,10.0.0.2:2379\"; "
       "empty: a file of the launching host keeps it"},
      {"cluster.store_ca", kFile, "\"\"",
       "certificate of the authority that signed those of etcd's members (PEM); with it, TLS is "
       "spoken"},
      {"cluster.store_cert", kFile, "\"\"",
       "certificate by which the job shows etcd who it is (PEM); empty: none"},
      {"cluster.store_key", kFile, "\"\"", "private key of cluster.store_cert (PEM)"},
      {"cluster.store_user", kText, "\"\"", "user of etcd; empty: none"},
      {"cluster.store_password_file", kFile, "\"\"",
       "file whose first line is the password of cluster.store_user"},
      {"cluster.store_prefix", kText, "\"/antdt/\"",
       "what all keys of the job in etcd begin with; users are kept apart by a prefix for each, as "
       "\"/antdt/alice/\", and roles of etcd for one of them each"},
      {"cluster.store_lease",
       kMilliseconds,
       "\"4s\"",
       "how long etcd waits for a sign of life of the job daemon before another one may take the "
       "job over, in whole seconds",
       {2e6, 3.6e9}},
      {"cluster.standbys",
       kInteger,
       "2",
       "hosts of cluster.hosts on which a job daemon stands by, to go on with the job if the host "
       "of the present one is lost; with cluster.store",
       {0, 100}},

      {"roles.worker.count",
       kCount,
       "",
       "workers of the job: a number, or the bounds { min, max }",
       {1, 1e5}},
      {"roles.worker.command", kTexts, "[\"antdt-trainer\"]",
       "program and arguments; a program without a slash is looked for beside antdt, then in PATH"},
      {"roles.worker.protocol",
       kText,
       "\"antdt\"",
       "what the program speaks: the worker protocol, torchrun's environment, or nothing",
       {},
       {"antdt", "torchrun", "exec"}},
      {"roles.worker.restart",
       kText,
       "\"\"",
       "who is started again when a worker dies: it alone, all together, or nobody; "
       "default member for protocol antdt, gang for others",
       {},
       {"member", "gang", "never", ""}},
      {"roles.worker.trace", kBoolean, "true",
       "a Python program of protocol torchrun is measured from inside: where its steps' time goes, "
       "and which collective a rank never entered"},
      {"roles.worker.resources.cpus",
       kNumber,
       "0",
       "processors for each; 0: not asked for",
       {0, 1e5}},
      {"roles.worker.resources.memory", kSize, "\"0B\"", "memory for each; 0: not asked for"},
      {"roles.worker.resources.gpus",
       kInteger,
       "0",
       "GPUs for each, which its host's agent leases to it alone; 0: none",
       {0, 1e4}},
      {"roles.worker.resources.shared_gpus", kBoolean, "false",
       "other processes that say so, too, may have the same GPUs"},
      {"roles.worker.resources.bind_to_gpus", kBoolean, "true",
       "each runs on the CPUs nearest to its GPUs, and takes memory there first"},
      {"roles.worker.env", kTextMap, "{}", "variables added to each worker's environment"},

      // A server needs at least one slice of the model.
      {"roles.server.count",
       kInteger,
       "0",
       "parameter servers of the job, for sync = \"ps-bsp\", \"ps-ssp\", \"ps-asp\", "
       "\"shadow-easgd\", \"shadow-ma\", \"shadow-bmuf\" and \"hybrid\"; 0: none",
       {0, kModelSlices}},
      {"roles.server.replicas",
       kInteger,
       "1",
       "processes that each server is; 2: a primary and a backup, so that a lost one costs nothing "
       "but the switch",
       {1, 2}},
      {"roles.server.command", kTexts, "[\"antdt-server\"]", "program and arguments of a server"},
      {"roles.server.resources.cpus",
       kNumber,
       "0",
       "processors for each server; 0: not asked for",
       {0, 1e5}},
      {"roles.server.resources.memory", kSize, "\"0B\"",
       "memory for each server; 0: not asked for"},
      {"roles.server.resources.gpus", kInteger, "0", "GPUs for each server; 0: none", {0, 1e4}},
      {"roles.server.resources.shared_gpus", kBoolean, "false",
       "other processes that say so, too, may have the same GPUs"},
      {"roles.server.resources.bind_to_gpus", kBoolean, "true",
       "each server runs on the CPUs nearest to its GPUs, and takes memory there first"},
      {"roles.server.env", kTextMap, "{}", "variables added to each server's environment"},
  };
  return keys;
}

}  // namespace antdt::schema::key_table
