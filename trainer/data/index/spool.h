// Bytes that are written first and read once afterwards, in a file that no directory lists.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "core/result.h"

namespace antdt::data {

class Spool {
 public:
  // In the directory of `path`. kIo.
  [[nodiscard]] static Result<Spool> beside(const std::string& path);

  void write(std::string_view bytes);  // rewind() returns the error, if any
  // From now on it is read, from its beginning.
  [[nodiscard]] Status rewind();
  // Fills `out`; kIo if there are fewer bytes.
  [[nodiscard]] Status read(std::span<char> out);

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  Spool(std::string path, std::FILE* file) : path_(std::move(path)), file_(file) {}
  std::string path_;  // beside which it is, for messages
  std::unique_ptr<std::FILE, Close> file_;
  int error_ = 0;  // errno of the first write that failed
};

}  // namespace antdt::data
