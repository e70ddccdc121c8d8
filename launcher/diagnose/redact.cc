#include "launcher/diagnose/redact.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "launcher/diagnose/secret_words.h"

namespace antdt::launcher {
namespace {

using Json = nlohmann::ordered_json;

bool is_name_char(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.';
}
bool is_token_char(char c) { return is_name_char(c) || c == '/' || c == '+' || c == '='; }

void replace_all(std::string& text, std::string_view what) {
  for (std::size_t at = text.find(what); at != std::string::npos;
       at = text.find(what, at + kRemoved.size())) {
    text.replace(at, what.size(), kRemoved);
  }
}

// Where a key in PEM form begins whose first line is not there: at the first of the lines without a
// blank directly above `end`.
std::size_t begin_of_headless(const std::string& text, std::size_t from, std::size_t end) {
  std::size_t begin = text.rfind('\n', end);
  begin = begin == std::string::npos || begin < from ? from : begin + 1;
  while (begin > from) {
    std::size_t above = begin < 2 ? std::string::npos : text.rfind('\n', begin - 2);
    above = above == std::string::npos || above < from ? from : above + 1;
    if (text.substr(above, begin - 1 - above).find_first_of(" \t") != std::string::npos) break;
    begin = above;
  }
  return begin;
}

// Private keys in PEM form, also if the first or the last line was cut off.
void remove_private_keys(std::string& text) {
  constexpr std::string_view kKind = "PRIVATE KEY-----";
  std::size_t from = 0;
  while (true) {
    const std::size_t end = text.find("-----END ", from);
    const std::size_t begin = text.find("-----BEGIN ", from);
    const std::size_t line = std::min(begin, end);
    if (line == std::string::npos) return;
    const std::size_t line_end = std::min(text.find('\n', line), text.size());
    if (text.substr(line, line_end - line).find(kKind) == std::string::npos) {
      from = line_end;  // a certificate, or words
      continue;
    }
    const std::size_t first = end < begin ? begin_of_headless(text, from, end) : begin;
    const std::size_t to = std::min(text.find('\n', end), text.size());
    text.replace(first, to - first, kRemoved);
    from = first + kRemoved.size();
  }
}

// "scheme://user:password@host"
void remove_url_users(std::string& text, std::vector<std::string>* found) {
  for (std::size_t at = text.find("://"); at != std::string::npos; at = text.find("://", at)) {
    at += 3;
    const std::size_t end = std::min(text.find_first_of("/ \t\n\"'", at), text.size());
    const std::string_view host = std::string_view(text).substr(at, end - at);
    const std::size_t sign = host.rfind('@');
    if (sign == std::string_view::npos) continue;
    const std::size_t colon = host.find(':');
    if (found != nullptr && colon < sign) {
      found->emplace_back(host.substr(colon + 1, sign - colon - 1));
    }
    text.replace(at, sign, kRemoved);
  }
}

// A value in a text: its bytes without the quotes around it.
struct Span {
  std::size_t begin = std::string::npos;
  std::size_t end = std::string::npos;
};

bool is_quote(char c) { return c == '"' || c == '\''; }

std::size_t skip(const std::string& text, std::size_t at, std::string_view of) {
  return std::min(text.find_first_not_of(of, at), text.size());
}

// The position of the quote that is at `at`, or that backslashes at `at` escape; npos: there is
// none.
std::size_t quote_at(const std::string& text, std::size_t at) {
  const std::size_t quote = skip(text, at, "\\");
  return quote < text.size() && is_quote(text[quote]) ? quote : std::string::npos;
}

// The end of a value in quotes, of which the first was escaped by `escapes` backslashes: a text
// inside of a text in JSON. A line's end also ends it.
std::size_t end_of_quoted(const std::string& text, std::size_t at, char quote,
                          std::size_t escapes) {
  std::size_t run = 0;  // of backslashes before `at`
  for (; at < text.size() && text[at] != '\n'; ++at) {
    const bool closes = escapes == 0 ? run % 2 == 0 : run == escapes;
    if (text[at] == quote && closes) return at - escapes;
    run = text[at] == '\\' ? run + 1 : 0;
  }
  return at;
}

// The end of a value without quotes. "Bearer x" and "Basic x" are one value.
std::size_t end_of_word(const std::string& text, std::size_t at) {
  for (const std::string_view scheme : {"Bearer ", "bearer ", "Basic "}) {
    if (text.compare(at, scheme.size(), scheme) == 0) at += scheme.size();
  }
  return std::min(text.find_first_of(" \t\r\n,;)}]&\"'\\", at), text.size());
}

// The value of a name that ends at `at`. After a name that is `followed` by its value a blank is
// enough; after others there must be "=" or ":".
Span value_after(const std::string& text, std::size_t at, bool followed) {
  if (const std::size_t quote = quote_at(text, at); quote != std::string::npos) at = quote + 1;
  std::size_t next = skip(text, at, " \t");
  const bool assigned = next < text.size() && (text[next] == '=' || text[next] == ':');
  if (!assigned && (!followed || next == at)) return {};
  if (assigned) next = skip(text, next + 1, " \t");
  if (next >= text.size() || text[next] == '\n') return {};
  if (const std::size_t quote = quote_at(text, next); quote != std::string::npos) {
    return {quote + 1, end_of_quoted(text, quote + 1, text[quote], quote - next)};
  }
  if (!assigned && text[next] == '-') return {};  // another flag
  return {next, end_of_word(text, next)};
}

void remove_named_values(std::string& text, std::vector<std::string>* found) {
  std::string kept;
  std::size_t copied = 0;
  for (std::size_t at = 0; at < text.size();) {
    if (!is_name_char(text[at])) {
      ++at;
      continue;
    }
    std::size_t end = at;
    while (end < text.size() && is_name_char(text[end])) ++end;
    const std::string_view word = std::string_view(text).substr(at, end - at);
    at = end;
    if (!names_secret(word)) continue;
    const Span value = value_after(text, end, word.starts_with('-') || word == "Bearer");
    if (value.begin == std::string::npos || value.begin >= value.end) continue;
    at = value.end;
    if (text.compare(value.begin, kRemoved.size(), kRemoved) == 0) continue;
    if (found != nullptr) found->push_back(text.substr(value.begin, value.end - value.begin));
    kept.append(text, copied, value.begin - copied).append(kRemoved);
    copied = value.end;
  }
  text = kept.append(text, copied);
}

// Where in the word [from, end) a token begins: at its beginning, or after "=" or "/".
std::size_t token_in(const std::string& text, std::size_t from, std::size_t end) {
  while (from < end && !looks_secret(std::string_view(text).substr(from, end - from))) {
    from = text.find_first_of("=/", from);
    from = from >= end ? end : from + 1;
  }
  return from;
}

void remove_tokens(std::string& text) {
  std::string kept;
  std::size_t copied = 0;
  for (std::size_t at = 0; at < text.size();) {
    if (!is_token_char(text[at])) {
      ++at;
      continue;
    }
    std::size_t end = at;
    while (end < text.size() && is_token_char(text[end])) ++end;
    const std::size_t from = token_in(text, at, end);
    if (from < end) {
      kept.append(text, copied, from - copied).append(kRemoved);
      copied = end;
    }
    at = end;
  }
  text = kept.append(text, copied);
}

bool is_flag_for_secret(const Json& word) {
  if (!word.is_string()) return false;
  const auto& text = word.get_ref<const std::string&>();
  return text.starts_with('-') && text.find('=') == std::string::npos && names_secret(text);
}

// A word that occurs by chance in other places: letters only.
bool is_plain_word(std::string_view text) {
  return std::ranges::all_of(text, [](unsigned char c) { return std::isalpha(c) != 0; });
}

// What was removed from a configuration.
struct Removed {
  std::vector<std::string> values;
  std::vector<std::string>& variables;  // their names
};

void redact_environment(Json& environment, Removed& removed) {
  for (auto& [name, value] : environment.items()) {
    if (!value.is_string() || is_harmless_variable(name) || value == kRemoved) continue;
    const auto& text = value.get_ref<const std::string&>();
    const bool is_path = text.starts_with('/') || text.starts_with('.');
    if (names_secret(name) || (!is_path && !is_plain_word(text))) removed.values.push_back(text);
    removed.variables.push_back(name);
    value = kRemoved;
  }
}

void remove(Json& secret, Removed& removed) {
  if (secret == kRemoved || secret.is_null()) return;
  removed.values.push_back(secret.is_string() ? secret.get<std::string>() : secret.dump());
  secret = kRemoved;
}

void redact(Json& value, const Redactor& redactor, Removed& removed) {
  if (value.is_string()) {
    value = redactor.text(value.get<std::string>(), &removed.values);
  } else if (value.is_object()) {
    for (auto& [name, member] : value.items()) {
      if (name == "env" && member.is_object()) {
        redact_environment(member, removed);
      } else if (names_secret(name)) {
        remove(member, removed);
      } else {
        redact(member, redactor, removed);
      }
    }
  } else if (value.is_array()) {
    bool after_flag = false;
    for (Json& member : value) {
      const bool is_secret = after_flag && member.is_string();
      after_flag = is_flag_for_secret(member);
      if (is_secret) {
        remove(member, removed);
      } else {
        redact(member, redactor, removed);
      }
    }
  }
}

std::string text_of(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

void Redactor::forget(const std::string& value) {
  const bool known = std::ranges::find(values_, value) != values_.end();
  if (value.size() < kShortest || known || kRemoved.find(value) != std::string_view::npos) return;
  values_.push_back(value);
  std::ranges::stable_sort(values_, std::ranges::greater{}, &std::string::size);
}

std::string Redactor::text(std::string_view given, std::vector<std::string>* found) const {
  std::string text(given);
  for (const std::string& value : values_) replace_all(text, value);
  remove_private_keys(text);
  remove_url_users(text, found);
  remove_named_values(text, found);
  remove_tokens(text);
  return text;
}

std::string Redactor::json(std::string_view given, int indent) const {
  Json parsed = Json::parse(given, nullptr, false);
  if (parsed.is_discarded()) return text(given);
  std::vector<std::string> variables;
  Removed removed{{}, variables};
  redact(parsed, *this, removed);
  return text_of(parsed, indent);
}

std::string Redactor::json_lines(std::string_view given) const {
  std::string lines;
  while (!given.empty()) {
    const std::size_t end = std::min(given.find('\n'), given.size());
    lines += json(given.substr(0, end), -1);
    if (!lines.ends_with('\n')) lines += '\n';
    given.remove_prefix(std::min(end + 1, given.size()));
  }
  return lines;
}

Result<std::string> Redactor::configuration(const std::string& json) {
  Json parsed = Json::parse(json, nullptr, false);
  if (parsed.is_discarded() || !parsed.is_object()) {
    return fail(ErrorKind::kCorrupt, "the configuration is no JSON object");
  }
  Removed removed{{}, variables_};
  redact(parsed, *this, removed);
  for (const std::string& value : removed.values) forget(value);
  redact(parsed, *this, removed);  // what one part names may occur in another
  return text_of(parsed, 2);
}

}  // namespace antdt::launcher
