// Precompiled: LibTorch's headers cost tens of seconds each time.
#pragma once
#include <torch/torch.h>
