// Errors of ZeroMQ as ours. Private to this folder.
#pragma once

#include <zmq.h>

#include <string>

#include "core/result.h"

namespace antdt::transport {

[[nodiscard]] inline tl::unexpected<Error> fail_zmq(ErrorKind kind, const std::string& what) {
  return fail(kind, "{}: {}", what, zmq_strerror(zmq_errno()));
}

}  // namespace antdt::transport
