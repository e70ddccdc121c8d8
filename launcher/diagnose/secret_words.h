// Which names stand for secrets, and which words look like secrets by themselves. Pure.
#pragma once

#include <string_view>

namespace antdt::launcher {

// Whether what is called so is a secret: "HF_TOKEN", "db-password", "aws_secret_access_key",
// "WANDB_API_KEY". "tokens" and "keys" are not: those are counts and paths.
[[nodiscard]] bool names_secret(std::string_view name);

// Whether the word has the form of a token of a known service ("ghp_...", "hf_...", "AKIA...", a
// JSON web token).
[[nodiscard]] bool looks_secret(std::string_view word);

// Whether the value of an environment variable of this name is useful for a diagnosis and known to
// be no secret (OMP_NUM_THREADS, NCCL_DEBUG, LD_LIBRARY_PATH, ...).
[[nodiscard]] bool is_harmless_variable(std::string_view name);

}  // namespace antdt::launcher
