// Makes one visitor of a variant from a lambda for each alternative.
#pragma once

namespace antdt {

template <class... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
template <class... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;

}  // namespace antdt
