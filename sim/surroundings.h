// What a process of the job has around it: the parts of a simulated cluster that it speaks to.
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
  const Faults& faults;  // that may come now
};

}  // namespace antdt::sim
