// Converts errors of ZeroMQ, which cppzmq throws; they are caught where they enter. Private to this
// folder.
#pragma once

#include <string>
#include <zmq.hpp>

#include "core/result.h"

namespace antdt::transport {

[[nodiscard]] inline tl::unexpected<Error> fail_zmq(ErrorKind kind, const std::string& what,
                                                    const zmq::error_t& error = {}) {
  return fail(kind, "{}: {}", what, error.what());
}

}  // namespace antdt::transport
