#include "core/os/directory.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace antdt {

Result<std::vector<std::string>> names_in(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code error;
  std::filesystem::directory_iterator it(directory, error);
  for (const std::filesystem::directory_iterator end; !error && it != end; it.increment(error)) {
    names.push_back(it->path().filename().string());
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    return fail(ErrorKind::kIo, "{} cannot be listed: {}", directory, error.message());
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace antdt
