// All messages at once, for tests of the codec. Other code includes the header of its conversation.
#pragma once

#include "core/wire/admin_messages.h"
#include "core/wire/agent_messages.h"
#include "core/wire/device/device_messages.h"
#include "core/wire/drill_messages.h"
#include "core/wire/envelope.h"
#include "core/wire/file_messages.h"
#include "core/wire/inspect_messages.h"
#include "core/wire/membership_messages.h"
#include "core/wire/operator_messages.h"
#include "core/wire/servers/ps_messages.h"
#include "core/wire/shard_messages.h"
#include "core/wire/trace_messages.h"
#include "core/wire/training_messages.h"
#include "core/wire/worker_messages.h"
