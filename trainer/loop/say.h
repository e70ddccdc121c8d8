// Passes messages of a worker's machine to its client.
#pragma once

#include "trainer/client/client.h"
#include "trainer/loop/accounts/time_account.h"
#include "trainer/worker/member/effects.h"

namespace antdt::trainer {

void say(client::Client& to, const TimeAccount& account, worker::Send& effect);

}  // namespace antdt::trainer
