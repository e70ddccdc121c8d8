// The files of a data set as they read unpacked, at any place.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/result.h"
#include "trainer/data/content/points.h"
#include "trainer/data/content/unpacker.h"
#include "trainer/data/index/mapped_file.h"

namespace antdt::data {

// Of a packed file; the memory for it is needed.
inline constexpr std::size_t kLongestLine = std::size_t{256} << 20;

// Lines of plain files are read where they are mapped. Of packed ones the pieces (1 MiB) that were
// unpacked last are kept, 64 MiB over all files: the records of a shard are neighbours, so most of
// them are in what is there. A piece that is not there is unpacked from the last access point
// before it, or from where the last one ended. For one thread at a time.
class Contents {
 public:
  Contents() = default;
  // In the order of their numbers, from 0. The points' windows must outlive this.
  void add(MappedFile file, Points points);
  // The line at `offset` of file `number`'s content, without its end; valid until the next call.
  // kCorrupt if it lies behind the content, or the file is not what its points say.
  [[nodiscard]] Result<std::string_view> line(std::size_t number, std::uint64_t offset);
  // That line will be asked for soon: where it is mapped, its memory is fetched meanwhile.
  void expect(std::size_t number, std::uint64_t offset) const;

 private:
  struct File {
    MappedFile file;
    Points points;
  };
  struct Piece {
    std::pair<std::size_t, std::uint64_t> key;  // file, number of the piece in it
    std::string text;
  };

  [[nodiscard]] Result<std::string_view> packed_line(std::size_t number, std::uint64_t offset);
  [[nodiscard]] Result<std::string_view> piece(std::size_t number, std::uint64_t index);
  [[nodiscard]] Status unpack_next();
  [[nodiscard]] Status move_to(std::size_t number, std::uint64_t index);

  std::vector<File> files_;
  std::list<Piece> pieces_;             // that used last in front
  std::unique_ptr<Unpacker> unpacker_;  // at the beginning of next_
  std::pair<std::size_t, std::uint64_t> next_;
  std::string line_;
};

}  // namespace antdt::data
