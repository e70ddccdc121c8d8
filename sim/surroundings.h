// The parts of a simulated cluster with which a process of the job communicates.
#pragma once

namespace antdt::sim {

class Checks;
class Daemons;
class Hosts;
class Network;
class Rings;
struct Faults;
struct SharedFiles;

struct Surroundings {
  Hosts& hosts;
  Network& network;
  Rings& rings;
  SharedFiles& files;
  Checks& checks;
  const Daemons& daemons;
  const Faults& faults;  // the faults that may happen now
};

}  // namespace antdt::sim
