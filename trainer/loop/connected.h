// Connects a running worker with its message thread.
#pragma once

#include "trainer/client/client.h"
#include "trainer/loop/accounts/time_account.h"
#include "trainer/loop/generation_guard.h"

namespace antdt::trainer {

// While this object lives, the client can end what the training thread is blocked in, and reports
// what that thread is doing.
class Connected {
 public:
  Connected(client::Client& client, GenerationGuard& guard, TimeAccount& account)
      : client_(client), account_(account) {
    client_.set_abort_handler([&guard](Generation g) { guard.end(g); });
    account_.set_listener([&client](TimeUse use) { client.set_activity(worker::name_of(use)); });
  }
  ~Connected() {
    account_.set_listener({});
    client_.set_abort_handler({});
  }
  Connected(const Connected&) = delete;
  Connected& operator=(const Connected&) = delete;

 private:
  client::Client& client_;
  TimeAccount& account_;
};

}  // namespace antdt::trainer
