// Precompiled for every test program (cmake/Targets.cmake).
#pragma once
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cmake/headers.h"
