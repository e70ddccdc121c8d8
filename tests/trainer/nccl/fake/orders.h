// What a test orders of the library, in the variable ANTDT_FAKE_NCCL: words such as
// "version=22703".
#pragma once

#include <cstdlib>
#include <sstream>
#include <string>

namespace fake {

struct Orders {
  int version = 22703;
  int cuda = 12040;
  int devices = 1;
  std::string device =
      "0000:3B:00.0";       // the PCI address of device 0; "own": another in each process
  std::string marks;        // a file that is made as soon as forming began, with the pid behind it
  int id_error = 0;         // ncclGetUniqueId fails with this result
  int init_ms = 0;          // how long forming takes once all members are there
  bool init_hangs = false;  // forming never ends, and the others wait for this member
  int init_error = 0;       // forming fails with this result
  int enqueue_ms = 0;       // an operation is put into its stream only after this
  int call_us = 0;          // how long each call stays in the library
  int hang_op = 0;          // the number, from 1, of the operation that this member never does
  int error_op = 0;         // the number of the operation during which `error` is reported
  int error = 6;
  std::string error_when;     // and only once this file is there
  bool sees_death = false;    // a member that died is reported as ncclRemoteError
  bool abort_hangs = false;   // ncclCommAbort does not return
  std::string hangs_mark;     // a file that is made when a call hangs
  bool call_hangs = false;    // an all-reduce does not return, as in a blocking communicator
  bool kernel_hangs = false;  // what runs on the device goes on after ncclCommAbort
};

inline Orders orders() {
  Orders found;
  const char* const text = std::getenv("ANTDT_FAKE_NCCL");
  std::istringstream words(text == nullptr ? "" : text);
  for (std::string word; words >> word;) {
    const std::size_t at = word.find('=');
    const std::string name = word.substr(0, at);
    const std::string value = at == std::string::npos ? "1" : word.substr(at + 1);
    const int number = std::atoi(value.c_str());
    if (name == "version")
      found.version = number;
    else if (name == "cuda")
      found.cuda = number;
    else if (name == "devices")
      found.devices = number;
    else if (name == "device")
      found.device = value;
    else if (name == "error_when")
      found.error_when = value;
    else if (name == "hangs_mark")
      found.hangs_mark = value;
    else if (name == "marks")
      found.marks = value;
    else if (name == "id_error")
      found.id_error = number;
    else if (name == "init_ms")
      found.init_ms = number;
    else if (name == "init_hangs")
      found.init_hangs = true;
    else if (name == "init_error")
      found.init_error = number;
    else if (name == "enqueue_ms")
      found.enqueue_ms = number;
    else if (name == "call_us")
      found.call_us = number;
    else if (name == "hang_op")
      found.hang_op = number;
    else if (name == "error_op")
      found.error_op = number;
    else if (name == "error")
      found.error = number;
    else if (name == "sees_death")
      found.sees_death = true;
    else if (name == "abort_hangs")
      found.abort_hangs = true;
    else if (name == "call_hangs")
      found.call_hangs = true;
    else if (name == "kernel_hangs")
      found.kernel_hangs = true;
    else
      std::abort();
  }
  return found;
}

}  // namespace fake
