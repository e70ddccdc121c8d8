#include "core/result.h"

#include <system_error>

namespace antdt {

tl::unexpected<Error> fail_errno(ErrorKind kind, int error_number, std::string what) {
  what += ": ";
  what += std::generic_category().message(error_number);
  return tl::unexpected<Error>(Error{kind, std::move(what)});
}

}  // namespace antdt
