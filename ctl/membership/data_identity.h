// Whether the data that a worker has are those that the job began with. Pure.
//
// The job's are what `antdt run` found on the launching host and wrote as RUN/data.json: how
// many records, the fingerprint of all files, and what built the index (docs/data.md). Records
// are known by number, so a worker with other files would train other records under the same
// numbers, and no account would show it.
#pragma once

#include <optional>
#include <string>

#include "core/wire/membership_messages.h"

namespace antdt::ctl {

// Programs of the user's may not know, and then say nothing: these are let in.
[[nodiscard]] bool tells_nothing(const wire::DataIdentity& data);

// How `found` differs from `expected`, which is that of data.json: the first file that does, with
// both values; `who` ("w1 on hostb") is who found it. None: it does not, or one of the two tells
// nothing. What only one of them tells (an older release does not tell files) is not compared.
[[nodiscard]] std::optional<std::string> data_difference(const wire::DataIdentity& expected,
                                                         const wire::DataIdentity& found,
                                                         const std::string& who);

}  // namespace antdt::ctl
