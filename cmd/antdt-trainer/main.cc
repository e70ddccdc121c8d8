// antdt-trainer: a worker that trains one of the built-in models.
#include "include/antdt/kit.h"

int main(int argc, char** argv) {
  return antdt::run_worker(argc, argv, antdt::built_in_registry());
}
