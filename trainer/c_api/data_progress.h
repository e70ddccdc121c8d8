// Tells the job how far this process is with opening its data. That precedes joining and may take
// hours, and who waits for the process to join waits as long as bytes move
// (ctl/processes/io_watch.h).
//
// A program opens its data first as a rule, because antdt_open is told how many records there are.
// Then it has no client yet, and reports go to its agent over a link of their own, without a hello
// and without a thread. What the agent sends over that link is dropped: until a worker joins, that
// is nothing that would not be sent again.
//
// Only the process tells that a shim of the agent started: it leads a session of its own, and its
// parent is the shim (antdtd/shim/shim_spawn.cc). What that process starts has the same
// environment, and the agent would take its link for the worker's.
//
// Once a job was opened, a link of its own would pretend that the worker begins anew.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "core/clock.h"
#include "core/transport/ipc_dealer.h"
#include "trainer/c_api/handle.h"
#include "trainer/client/client.h"
#include "trainer/client/environment.h"

namespace antdt::capi {

// The client of a job that is open in this process. While there is one, it tells. Any thread.
class OpenClient {
 public:
  // `client`: null if it has joined.
  explicit OpenClient(client::Client* client);
  ~OpenClient();
  OpenClient(const OpenClient&) = delete;
  OpenClient& operator=(const OpenClient&) = delete;

  // From now on its reports are about the training.
  void joins();
  // Whether a client is open. Those that have not joined are told.
  static bool tell(const client::Io& io);
  // Whether a job was opened in this process, and none is open any more.
  static bool all_closed();

 private:
  client::Client* client_;
};

// When a process tells again. Of all that it opens: a program may open hundreds of data sets, each
// of which is soon open. Any thread.
class TellPace {
 public:
  static constexpr Duration kTellEvery = std::chrono::seconds(1);

  // Nothing is told of what takes less than kTellEvery in all.
  explicit TellPace(const Clock& clock) : clock_(clock), due_(clock.now() + kTellEvery) {}
  // Then it is due again kTellEvery later.
  bool is_due();

 private:
  const Clock& clock_;
  std::mutex mutex_;
  MonoTime due_;
};

// While a data set is being opened; of one thread.
class DataProgress {
 public:
  // Of this process: it tells nobody if no agent started it.
  [[nodiscard]] static DataProgress of_this_process();
  // `self`: the worker that this process is, if it is one.
  DataProgress(std::optional<client::Environment> self, TellPace& pace)
      : self_(std::move(self)), pace_(pace) {}
  // The data are open, or cannot be opened.
  ~DataProgress();
  DataProgress(const DataProgress&) = delete;
  DataProgress& operator=(const DataProgress&) = delete;

  void tell(const client::Io& io);

 private:
  void send(const client::Io& io);
  void drop_what_came();

  const std::optional<client::Environment> self_;
  TellPace& pace_;
  bool told_ = false;
  std::optional<transport::IpcDealer> agent_;
};

// What the program itself says of data that it opens in a way of its own. Any thread. Nothing is
// told in a child that was forked, as the agent did not start it.
class ProgramProgress {
 public:
  static ProgramProgress& of_this_process();
  ProgramProgress(std::optional<client::Environment> self, TellPace& pace)
      : self_(std::move(self)), pace_(pace) {}

  // Between two calls the link to the agent stays.
  void tell(const client::Io& io);
  // The data are open, or the client of a job tells from now on.
  void ends();

 private:
  const OfThisProcess owner_;
  const std::optional<client::Environment> self_;
  TellPace& pace_;
  std::mutex mutex_;
  std::unique_ptr<DataProgress> progress_;
};

}  // namespace antdt::capi
