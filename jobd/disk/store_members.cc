#include "jobd/disk/store_members.h"

#include <algorithm>

#include "jobd/disk/run_journal.h"
#include "store/client.h"
#include "store/etcd_journal.h"

namespace antdt::jobd {
namespace {

constexpr int kLooks = 5;

StoreMember ask_member(const EtcdAddress& etcd, const std::string& member) {
  StoreMember found{member, "", Duration::max()};
  EtcdAddress alone = etcd;
  alone.members = {member};
  const SteadyClock clock;
  const auto ask = [&]() -> Status {
    ANTDT_TRY(const auto client, store::Client::make(alone));
    for (int i = 0; i < kLooks; ++i) {
      const MonoTime begin = clock.now();
      ANTDT_RETURN_IF_ERROR(store::check_access(*client));
      found.answers_in = std::min(found.answers_in, clock.now() - begin);
    }
    return {};
  };
  if (const Status asked = ask(); !asked) found.error = asked.error().message;
  return found;
}

}  // namespace

std::vector<StoreMember> ask_store_members(const launcher::ClusterSection& cluster) {
  std::vector<StoreMember> found;
  const auto etcd = etcd_of(cluster);
  if (!etcd) return found;
  for (const std::string& member : etcd->members) found.push_back(ask_member(*etcd, member));
  return found;
}

}  // namespace antdt::jobd
