// The same as headers.h, for the libraries that libantdt.so is made of.
#pragma once
#include "cmake/headers.h"
