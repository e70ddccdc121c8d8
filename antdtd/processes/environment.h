// The environment of a worker: built from the agent's environment and the job's settings.
#pragma once

#include <string>
#include <vector>

#include "antdtd/shim/process_key.h"
#include "core/os/user.h"
#include "core/wire/agent_messages.h"

namespace antdt::antdtd {

// The part of the agent's own environment that a process of another user gets: where programs and
// libraries are, language and time zone (PATH, LD_LIBRARY_PATH, LANG, LANGUAGE, LC_*, TZ, CUDA_*,
// NVIDIA_*, NCCL_*, OMP_*), and the user's own HOME, USER, LOGNAME and SHELL. The rest of root's
// environment is private.
[[nodiscard]] std::vector<std::string> environment_of(const UserIdentity& user,
                                                      const std::vector<std::string>& agent_env);

// What Python programs use of this installation. Empty: it is not there.
struct PythonFiles {
  std::string tracer;   // the folder of python/antdt/trace with its sitecustomize.py
  std::string library;  // libantdt; empty: the dynamic linker finds it
};
// What belongs to the program `executable`: in a prefix, a wheel or a build tree.
[[nodiscard]] PythonFiles find_python_files(const std::string& executable);
// Whether the job sets ANTDT_TRACE=1 and the tracer is not there: its script is not measured.
[[nodiscard]] bool lacks_tracer(const std::vector<wire::EnvVar>& job_env,
                                const PythonFiles& python);

// `agent_env` and the result are "NAME=value". In order:
//  - variables of other launchers (RANK, WORLD_SIZE, LOCAL_*, GROUP_*, ROLE_*, MASTER_*,
//    TORCHELASTIC_*, PET_*, SLURM_*, OMPI_*, PMI_*, PMIX_*) and of AntDT itself (ANTDT_*) are
//    dropped from the agent's environment, because they would make a worker believe that it belongs
//    to another group;
//  - the job's own variables are set;
//  - ANTDT_SOCKET, ANTDT_JOB_ID, ANTDT_WORKER_ID and ANTDT_ATTEMPT are set last: no
//    job can give a worker another identity. ANTDT_PROTOCOL is "antdt" unless the
//    job says otherwise;
//  - ANTDT_AGENT_LIBRARY is the agent's own libantdt, for a Python package that has none of its
//  own.
//    ANTDT_LIBRARY, which goes before all others, is left to the job;
//  - if the job sets ANTDT_TRACE=1, the tracer's folder is the first of PYTHONPATH, and
//    ANTDT_LIBRARY is its library unless the job sets it;
//  - OMP_NUM_THREADS=1 if nobody set it: workers that each take every core slow
//    each other down. For torchrun also TORCH_NCCL_ASYNC_ERROR_HANDLING=1. For protocol antdt also
//    OMP_WAIT_POLICY=PASSIVE and OPENBLAS_THREAD_TIMEOUT=4 (2^4 cycles): a compute thread that
//    waits for its next task sleeps. By default it spins for some 20 ms, on a core that the member
//    needs to read records and to send gradients.
[[nodiscard]] std::vector<std::string> worker_environment(const std::vector<std::string>& agent_env,
                                                          const std::string& workers_socket,
                                                          const ProcessKey& key,
                                                          const std::vector<wire::EnvVar>& job_env,
                                                          const PythonFiles& python = {});

}  // namespace antdt::antdtd
