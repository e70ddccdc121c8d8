// antdt-instrument: a worker of the models tally, tally3 and emulated, which need no LibTorch.
#include "trainer/instruments/instruments.h"

int main(int argc, char** argv) {
  return antdt::trainer::run_program(argc, argv, antdt::trainer::instrument_program());
}
