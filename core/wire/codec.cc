#include "core/wire/codec.h"

#include <algorithm>
#include <array>
#include <msgpack/null_visitor.hpp>
#include <msgpack/unpack.hpp>

#include "core/check.h"

namespace antdt::wire::detail {

namespace {

// How deep arrays and maps are nested in a message; no type of ours has more than seven.
constexpr std::size_t kMostNested = 12;
// How many bytes to reserve for an array, for each byte of the message, before its elements are
// read. More is allocated as elements arrive.
constexpr std::size_t kBelieved = 16;

// msgpack-c calls this for each value, each key and each end, in the order of the bytes. Returning
// false ends the reading.
class Visitor : public msgpack::null_visitor {
 public:
  Visitor(std::string_view bytes, Target message) : bytes_(bytes.size()), target_(message) {}

  [[nodiscard]] const std::string& problem() const { return problem_; }

  bool visit_nil() { return value({}); }
  bool visit_boolean(bool v) {
    Token token{Type::kBoolean};
    token.boolean = v;
    return value(token);
  }
  bool visit_positive_integer(std::uint64_t v) {
    Token token{Type::kUnsigned};
    token.unsigned_value = v;
    return value(token);
  }
  bool visit_negative_integer(std::int64_t v) {
    Token token{Type::kNegative};
    token.negative_value = v;
    return value(token);
  }
  bool visit_float32(float v) { return visit_float64(v); }
  bool visit_float64(double v) {
    Token token{Type::kReal};
    token.real_value = v;
    return value(token);
  }
  bool visit_str(const char* v, std::uint32_t size) { return text(Type::kString, v, size); }
  bool visit_bin(const char* v, std::uint32_t size) { return text(Type::kString, v, size); }
  bool visit_ext(const char* v, std::uint32_t size) { return text(Type::kExtension, v, size); }

  bool start_array(std::uint32_t count) {
    if (!wanted()) return ++skipped_, true;
    const Target target = inside(Type::kArray);
    if (target.reader->begin == nullptr) return refuse(target, Type::kArray);
    if (count > bytes_) return false;  // every element is at least one byte
    target.reader->begin(
        target.value,
        std::min<std::size_t>(count, kBelieved * bytes_ / target.reader->element_bytes));
    return push({target, name_, nullptr, nullptr, nullptr});
  }
  bool start_array_item() {
    if (skipped_ > 0) return true;
    name_ = top().name;
    target_ = top().target.reader->next(top().target.value);
    return true;
  }
  bool end_array() { return pop(); }

  bool start_map(std::uint32_t) {
    if (!wanted()) return ++skipped_, true;
    const Target target = inside(Type::kMap);
    if (target.reader->fields == nullptr) return refuse(target, Type::kMap);
    const std::vector<Field>& fields = target.reader->fields();
    return push({target, name_, fields.data(), fields.data() + fields.size(), fields.data()});
  }
  bool start_map_key() {
    if (skipped_ > 0) return true;
    in_key_ = true;
    target_ = {};  // an entry whose key is not a string is skipped
    return true;
  }
  bool end_map_key() {
    if (skipped_ == 0) in_key_ = false;
    return true;
  }
  bool end_map() { return pop(); }

 private:
  // A struct or a vector whose parts are being read.
  struct Nested {
    Target target;
    std::string_view name;  // the name of the field that it is
    const Field* fields;    // if it is a struct
    const Field* end;
    const Field* next;  // the next field, if the peer writes in our order
  };

  // Whether the next value belongs to a field.
  [[nodiscard]] bool wanted() const {
    return skipped_ == 0 && !in_key_ && target_.reader != nullptr;
  }
  [[nodiscard]] Nested& top() { return nested_[depth_ - 1]; }

  bool text(Type type, const char* data, std::uint32_t size) {
    Token token{type};
    token.text = {size > 0 ? data : "", size};
    if (in_key_ && skipped_ == 0) return key(token);
    return value(token);
  }
  bool value(const Token& token) {
    if (!wanted()) return true;
    const Target target = inside(token.type);
    const char* wrong = target.reader->take(target.value, token);
    return wrong == nullptr || refuse_as(wrong);
  }
  bool key(const Token& token) {
    if (token.type != Type::kString) return true;
    Nested& map = top();
    const Field* field = map.next;
    if (field == map.end || field->name != token.text) {
      field =
          std::find_if(map.fields, map.end, [&](const Field& f) { return f.name == token.text; });
      if (field == map.end) return true;  // a newer peer may send further fields
    }
    name_ = field->name;
    target_ = {static_cast<char*>(map.target.value) + field->offset, field->reader};
    map.next = field + 1;
    return true;
  }
  // The target of the next value; for an optional, of the value inside it.
  [[nodiscard]] Target inside(Type type) const {
    Target target = target_;
    while (target.reader->inside != nullptr && type != Type::kNil) {
      target = target.reader->inside(target.value);
    }
    return target;
  }
  bool push(const Nested& nested) {
    ANTDT_CHECK(depth_ < kMostNested, "a message nested deeper than {}", kMostNested);
    nested_[depth_++] = nested;
    return true;
  }
  bool pop() {
    skipped_ > 0 ? --skipped_ : --depth_;
    return true;
  }
  bool refuse(const Target& target, Type type) {
    return refuse_as(target.reader->take(target.value, Token{type}));
  }
  bool refuse_as(const char* wrong) {
    problem_ = fmt::format("field '{}' is {}", name_, wrong);
    return false;
  }

  std::size_t bytes_;
  Target target_;  // the target of the next value
  std::string_view name_ = "message";
  bool in_key_ = false;
  std::uint64_t skipped_ = 0;  // how deep the reader is inside a value that is skipped
  std::size_t depth_ = 0;
  std::array<Nested, kMostNested> nested_;
  std::string problem_;
};

}  // namespace

Status read_message(std::string_view bytes, Target message) {
  Visitor visitor(bytes, message);
  std::size_t end = 0;
  if (!msgpack::parse(bytes.data(), bytes.size(), end, visitor)) {
    return fail(ErrorKind::kCorrupt, "message of {} bytes cannot be read: {}", bytes.size(),
                visitor.problem().empty()
                    ? "it is cut short, claims more than it holds, or is no msgpack"
                    : visitor.problem());
  }
  if (end < bytes.size()) {
    return fail(ErrorKind::kCorrupt, "message of {} bytes cannot be read: {} bytes after its end",
                bytes.size(), bytes.size() - end);
  }
  return {};
}

}  // namespace antdt::wire::detail
