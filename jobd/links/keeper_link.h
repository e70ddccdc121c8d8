// The job daemon's link to the private agent that keeps it, if the job's own hosts are others. The
// daemon tells it each second that it lives; if it does not, the agent kills it and starts it again
// (antdtd/agent/job_keeper.h).
#pragma once

#include <string>

#include "core/ids.h"
#include "core/loop.h"
#include "core/transport/socket.h"
#include "core/wire/envelope.h"

namespace antdt::jobd {

class KeeperLink {
 public:
  KeeperLink(EventLoop& loop, const std::string& job, Incarnation incarnation,
             transport::Socket agent);
  ~KeeperLink();
  KeeperLink(const KeeperLink&) = delete;
  KeeperLink& operator=(const KeeperLink&) = delete;

  // Tells the agent that the daemon lives. The link calls it each second; whoever keeps the loop
  // from turning must call it too.
  void heartbeat();

 private:
  void tick();
  void receive();
  template <class T>
  void say(const T& message);

  EventLoop& loop_;
  wire::Envelope envelope_;
  Incarnation incarnation_;
  transport::Socket agent_;
  TimerId timer_;
  bool known_ = false;  // to the present agent, which may have replaced another one
};

}  // namespace antdt::jobd
