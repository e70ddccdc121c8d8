// Every type that is decoded from a frame of the wire, for the fuzzer and for its seeds. A new
// message goes last: kept inputs choose a message by its number.
#pragma once

#include <tuple>

#include "core/wire/messages.h"

namespace antdt::fuzz {

using WireMessages = std::tuple<
    wire::Envelope, wire::Hello, wire::Refused, wire::Fetch, wire::Grants, wire::Recall,
    wire::Recalled, wire::WorkerWelcome, wire::Report, wire::Join, wire::Form, wire::Address,
    wire::Roster, wire::Ready, wire::Plan, wire::Settle, wire::Regroup, wire::Abort,
    wire::PhaseStart, wire::Progress, wire::CheckpointOrder, wire::CheckpointWritten, wire::Leave,
    wire::Bye, wire::Attach, wire::AgentWelcome, wire::StartProcess, wire::ProcessStarted,
    wire::ProcessExited, wire::ExitSeen, wire::StopProcess, wire::Metrics, wire::ReservePort,
    wire::ReservedPort, wire::Heartbeat, wire::Detach, wire::StartJob, wire::JobStarted,
    wire::StatusRequest, wire::StatusReply, wire::StopJob, wire::EvictWorkers, wire::ResizeJob,
    wire::ApproveAction, wire::SkipRecords, wire::HostGone, wire::Done, wire::PsOpen,
    wire::PsOpened, wire::PsPut, wire::PsPull, wire::PsPulled, wire::PsPush, wire::PsStepPull,
    wire::PsStepPush, wire::PsStaged, wire::PsCommit, wire::PsDecided, wire::PsIdle,
    wire::PsDecision, wire::PsApplied, wire::PsCut, wire::PsSaved, wire::PsIdled, wire::PsServe,
    wire::PsServing, wire::PsRoster, wire::PsCopied, wire::PsTaken, wire::PsImage, wire::PsStats,
    wire::InjectRules, wire::Injected, wire::Traced, wire::StackWanted, wire::StackTold,
    wire::CheckpointBegun, wire::FilesAttach, wire::FilesReady, wire::FilesDetach, wire::FileProbe,
    wire::FileProbed, wire::FileList, wire::FileListed, wire::FileRead, wire::FileData,
    wire::FileWrite, wire::FileDone, wire::FileSum, wire::FileSummed, wire::FileCommit,
    wire::FileRemove, wire::JobsRequest, wire::JobsReply, wire::RelayedRequest, wire::RelayedReply,
    wire::FileHost, wire::FileHostTold, wire::FileClock, wire::FileClockTold, wire::FileDisk,
    wire::FileDiskTold, wire::FilePort, wire::FilePortOpen, wire::FileLink, wire::FileLinkTold,
    wire::HostDrain, wire::DrainHost, wire::HostDevices, wire::DeviceTrouble>;

}  // namespace antdt::fuzz
