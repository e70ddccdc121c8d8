// Values as few bytes, for the journal: numbers as LEB128, lists with their length in front, no
// names.
//
// A type X takes part by one function for both directions,
//     template <class Archive>
//     void io(Archive& a, typename Archive::template Ref<X> x) { a(x.one, x.two); }
// A reader does not throw. Once it meets bytes that cannot be read, ok() is false, and the values
// that it returns are meaningless.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/ids.h"

namespace antdt::shard_server {

class Writer {
 public:
  template <class T>
  using Ref = const T&;

  template <class... T>
  void operator()(const T&... values) {
    (put(values), ...);
  }
  [[nodiscard]] std::string take() { return std::move(bytes_); }

 private:
  template <class T>
  void put(const T& value) {
    if constexpr (std::is_unsigned_v<T>) {
      put_number(value);
    } else if constexpr (std::is_enum_v<T>) {
      put_number(static_cast<std::underlying_type_t<T>>(value));
    } else {
      io(*this, value);
    }
  }
  void put(const std::string& text) { put(std::string_view(text)); }
  template <class T>
  void put(const std::vector<T>& list) {
    put_number(list.size());
    for (const T& item : list) put(item);
  }
  template <class Tag, class Rep>
  void put(Id<Tag, Rep> id) {
    put_number(id.value);
  }
  void put(std::string_view text) {
    put_number(text.size());
    bytes_ += text;
  }
  void put(double value) {
    const auto bits = std::bit_cast<std::uint64_t>(value);
    for (int shift = 0; shift < 64; shift += 8) bytes_.push_back(static_cast<char>(bits >> shift));
  }
  void put_number(std::uint64_t number) {
    for (; number >= 0x80; number >>= 7) bytes_.push_back(static_cast<char>(number | 0x80));
    bytes_.push_back(static_cast<char>(number));
  }

  std::string bytes_;
};

class Reader {
 public:
  template <class T>
  using Ref = T&;

  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  template <class... T>
  void operator()(T&... values) {
    (get(values), ...);
  }
  [[nodiscard]] bool ok() const { return ok_; }
  [[nodiscard]] bool at_end() const { return rest_.empty(); }
  void reject() { ok_ = false; }

 private:
  template <class T>
  void get(T& value) {
    if constexpr (std::is_unsigned_v<T>) {
      const std::uint64_t number = get_number();
      value = static_cast<T>(number);
      if (value != number) reject();
    } else if constexpr (std::is_enum_v<T>) {
      const std::uint64_t number = get_number();
      if (number > static_cast<std::uint64_t>(last_of(T{}))) return reject();
      value = static_cast<T>(number);
    } else {
      io(*this, value);
    }
  }
  template <class T>
  void get(std::vector<T>& list) {
    list.clear();
    const std::uint64_t count = get_number();
    if (count > rest_.size()) return reject();  // each item takes at least one byte
    list.reserve(count);
    for (std::uint64_t i = 0; i < count && ok_; ++i) get(list.emplace_back());
  }
  template <class Tag, class Rep>
  void get(Id<Tag, Rep>& id) {
    get(id.value);
  }
  void get(std::string& text) {
    const std::uint64_t size = get_number();
    if (size > rest_.size()) return reject();
    text.assign(rest_.substr(0, size));
    rest_.remove_prefix(size);
  }
  void get(double& value) {
    if (rest_.size() < 8) return reject();
    std::uint64_t bits = 0;
    for (std::size_t i = 0; i < 8; ++i) {
      bits |= static_cast<std::uint64_t>(static_cast<unsigned char>(rest_[i])) << (8 * i);
    }
    value = std::bit_cast<double>(bits);
    rest_.remove_prefix(8);
  }
  std::uint64_t get_number() {
    std::uint64_t number = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (rest_.empty() || !ok_) break;
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      number |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return number;
    }
    reject();
    return 0;
  }

  std::string_view rest_;
  bool ok_ = true;
};

template <class Archive>
void io(Archive& a, typename Archive::template Ref<WorkerId> x) {
  // A worker id is encoded as its role and its number.
  auto role = static_cast<unsigned char>(x.role);
  a(role, x.index);
  if constexpr (std::is_same_v<Archive, Reader>) x.role = static_cast<char>(role);
}
template <class Archive>
void io(Archive& a, typename Archive::template Ref<Member> x) {
  a(x.worker, x.attempt);
}

}  // namespace antdt::shard_server
