// Runs a text script of ledger events and writes what it answers.
//
// A line is an event; the indented lines under it are its effects (but what is
// written to the journal). '#' begins a comment. Members are written w0.1:
// worker w0, attempt 1.
//
//   data records=N shard=N [eval=N] [limit=N]    first line; file order
//   open PHASE train|eval EPOCH
//   admit MEMBER | lost MEMBER
//   settle gen=G [places=M:PLACE[!],…] [members=M,…]    ! : it was lost
//   shares WORKER=STEP[/HOLD] …
//   fetch MEMBER seq=N place=N want=N [gen=G] [phase=P] [records=N]   (N: of an eval partial)
//   progress MEMBER place=N [gen=G] [phase=P]
//   recalled MEMBER number=N end=N [gen=G] [phase=P]
//   skip FROM:TO REASON
//   at MS               sets the clock
//   restart             the ledger is made again from the journal
//   state               shows the counts and every hand
#pragma once

#include <string>

namespace antdt::shard_server {

// The script again, each event with the effects that it has now.
[[nodiscard]] std::string run_transcript(const std::string& script);

}  // namespace antdt::shard_server
