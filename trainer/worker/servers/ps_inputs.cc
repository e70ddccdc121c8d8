#include "trainer/worker/servers/ps_inputs.h"

#include <type_traits>

namespace antdt::worker::ps_worker {

std::optional<Input> input_of(client::Directive directive) {
  if (auto* const roster = std::get_if<wire::PsRoster>(&directive.order)) {
    return ServersNamed{directive.generation, std::move(*roster)};
  }
  auto input = worker::input_of(std::move(directive));
  if (!input) return std::nullopt;
  return std::visit(
      [](auto& order) -> std::optional<Input> {
        if constexpr (std::is_constructible_v<Input, decltype(order)>) {
          return Input(std::move(order));
        } else {
          return std::nullopt;
        }
      },
      *input);
}

}  // namespace antdt::worker::ps_worker
