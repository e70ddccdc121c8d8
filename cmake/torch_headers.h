// Precompiled for what uses LibTorch: its headers cost tens of seconds each time.
#pragma once
#include <torch/torch.h>
