// How a message names itself and its fields, for the codec (core/wire/codec.h).
#pragma once

#include <string_view>

#include "core/ids.h"
#include "core/names.h"

#define ANTDT_MESSAGE(kind)                       \
  static constexpr std::string_view kKind = kind; \
  template <class Self, class V>                  \
  static void fields([[maybe_unused]] Self& m, [[maybe_unused]] V& v)
#define ANTDT_PART               \
  template <class Self, class V> \
  static void fields(Self& m, V& v)
