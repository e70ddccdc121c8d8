// Whether a worker has the data with which the job began. Pure.
//
// The job's data are those that `antdt run` found on the launching host and described in
// RUN/data.json: the number of records, the fingerprint of all files, and what built the index
// (docs/data.md). Records are known by number, so a worker with other files would train other
// records under the same numbers, and no account would show it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/domain/pinned_data.h"
#include "core/wire/membership_messages.h"

namespace antdt::ctl {

// Paths are not compared, because they may differ from host to host.
[[nodiscard]] bool same_file(const wire::DataFile& a, const wire::DataFile& b);

// Whether the identity is empty. A user's program may not know its data; then it is admitted
// unchecked.
[[nodiscard]] bool tells_nothing(const wire::DataIdentity& data);

// The identity that a worker of this domain must have: of pinned files only those of the domain.
// Records without files are known by their number alone, which is the same in every domain.
[[nodiscard]] wire::DataIdentity data_in(const wire::DataIdentity& all, const PinnedData& pins,
                                         std::string_view domain);

// How `found` differs from `expected`, the identity in data.json: the first file that differs, with
// both values. `who` ("w1 on hostb") is the worker that found it. Empty if they agree, or if one of
// them is empty. A value that only one of them has (an older release does not list files) is not
// compared.
[[nodiscard]] std::optional<std::string> data_difference(const wire::DataIdentity& expected,
                                                         const wire::DataIdentity& found,
                                                         const std::string& who);

}  // namespace antdt::ctl
