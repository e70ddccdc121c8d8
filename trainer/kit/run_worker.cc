#include <antdt/kit.h>

#include "trainer/kit/maker.h"

namespace antdt {

int run_worker(int argc, char** argv, const Registry& registry) {
  return trainer::run_program(argc, argv, trainer::program_of(registry));
}

}  // namespace antdt
