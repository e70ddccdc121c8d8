// Where etcd is and how a client proves who it is: cluster.store and the keys beside it in
// job.toml.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace antdt {

struct EtcdAddress {
  std::vector<std::string> members;  // "10.0.0.1:2379", at least one
  // PEM file of the authority that signed the members' certificates; empty: no TLS
  std::string ca = {};
  std::string certificate = {}, key = {};  // this client's PEM files; empty: it has none
  std::string user = {};                   // of etcd; empty: none
  std::string password_file = {};          // its first line is the user's password
  std::string prefix = "/antdt/";          // of all keys
};

// The members in "etcd://h1:2379,h2:2379". kUsage; the message begins with the text in quotes.
[[nodiscard]] Result<std::vector<std::string>> etcd_members(std::string_view url);

// The members that are not on this machine's loopback interface, whose traffic others can read if
// there is no TLS.
[[nodiscard]] std::vector<std::string> exposed_etcd_members(const EtcdAddress& address);

// "etcd (h1:2379, h2:2379)", for messages.
[[nodiscard]] std::string to_string(const EtcdAddress& address);

}  // namespace antdt
