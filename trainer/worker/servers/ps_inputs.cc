#include "trainer/worker/servers/ps_inputs.h"

#include <type_traits>

namespace antdt::worker {

std::optional<PsInput> ps_input_of(client::Directive directive) {
  if (auto* const roster = std::get_if<wire::PsRoster>(&directive.order)) {
    return ServersNamed{directive.generation, std::move(*roster)};
  }
  auto input = input_of(std::move(directive));
  if (!input) return std::nullopt;
  return std::visit(
      [](auto& order) -> std::optional<PsInput> {
        if constexpr (std::is_constructible_v<PsInput, decltype(order)>) {
          return PsInput(std::move(order));
        } else {
          return std::nullopt;
        }
      },
      *input);
}

}  // namespace antdt::worker
