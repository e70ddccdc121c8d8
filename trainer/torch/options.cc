#include <antdt/kit/options.h>
#include <fmt/format.h>

namespace antdt::kit {

namespace {

std::string kind_of(const Options::Value& value) {
  constexpr const char* kKinds[] = {"true or false",    "a whole number",    "a number",
                                    "a string",         "a list of numbers", "a list of numbers",
                                    "a list of strings"};
  return kKinds[value.index()];
}

// An integer is also a number, and so are the integers of a list; an empty list has any type.
template <class T>
std::optional<T> as(const Options::Value& value) {
  if (const T* same = std::get_if<T>(&value)) return *same;
  if constexpr (std::is_same_v<T, double>) {
    if (const auto* whole = std::get_if<std::int64_t>(&value)) return static_cast<double>(*whole);
  }
  if (const auto* list = std::get_if<Options::Integers>(&value)) {
    if constexpr (std::is_same_v<T, Options::Numbers>) return T(list->begin(), list->end());
    if constexpr (std::is_same_v<T, Options::Texts>) {
      if (list->empty()) return T();
    }
  }
  return {};
}

}  // namespace

UsageError::~UsageError() = default;

template <class T>
T Options::read(const std::string& key, const char* kind, const std::optional<T>& fallback) const {
  read_.insert(key);
  const auto found = values_.find(key);
  if (found == values_.end()) {
    if (fallback) return *fallback;
    throw UsageError(fmt::format("[user] {} is missing: the program needs {}", key, kind));
  }
  if (auto value = as<T>(found->second)) return std::move(*value);
  throw UsageError(
      fmt::format("[user] {} is {}: it must be {}", key, kind_of(found->second), kind));
}

std::int64_t Options::integer(const std::string& key, std::optional<std::int64_t> fallback) const {
  return read<std::int64_t>(key, "a whole number", fallback);
}
double Options::number(const std::string& key, std::optional<double> fallback) const {
  return read<double>(key, "a number", fallback);
}
bool Options::flag(const std::string& key, std::optional<bool> fallback) const {
  return read<bool>(key, "true or false", fallback);
}
std::string Options::text(const std::string& key, std::optional<std::string> fallback) const {
  return read<std::string>(key, "a string", fallback);
}
Options::Integers Options::integers(const std::string& key,
                                    std::optional<Integers> fallback) const {
  return read<Integers>(key, "a list of whole numbers", fallback);
}
Options::Numbers Options::numbers(const std::string& key, std::optional<Numbers> fallback) const {
  return read<Numbers>(key, "a list of numbers", fallback);
}
Options::Texts Options::texts(const std::string& key, std::optional<Texts> fallback) const {
  return read<Texts>(key, "a list of strings", fallback);
}

bool Options::has(const std::string& key) const {
  read_.insert(key);
  return values_.contains(key);
}

std::vector<std::string> Options::unread() const {
  std::vector<std::string> keys;
  for (const auto& [key, value] : values_) {
    if (!read_.contains(key)) keys.push_back(key);
  }
  return keys;
}

std::vector<std::string> Options::known() const { return {read_.begin(), read_.end()}; }

}  // namespace antdt::kit
