// How the members of a group find one another: of each pair that is to be connected the
// lower rank dials, and says who it is; the other answers whether it is expected.
//
// Both compare a key, so that a member of another generation never contributes, and a
// stranger that dials is turned away without harm to those who wait. The key is no secret
// that protects the tensors: nothing here is encrypted.
#pragma once

#include <poll.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/owned_fd.h"
#include "core/result.h"

namespace antdt::trainer {

class Greeting {
 public:
  struct Self {
    std::uint64_t key = 0;
    std::uint32_t rank = 0;
    std::uint32_t size = 0;
  };
  // `listener` does not block. What makes `wake` readable ends it.
  Greeting(const Self& self, const OwnedFd& listener, const OwnedFd& wake)
      : self_(self), listener_(listener), wake_(wake) {}

  // Connections to all `peers`, by rank. kRefused when one that was dialled does not know
  // this member, kIo when one cannot be reached or does not come in time, kAborted.
  [[nodiscard]] Result<std::map<std::uint32_t, OwnedFd>> meet(
      const std::vector<std::uint32_t>& peers, std::span<const std::string> addresses,
      Duration timeout);

 private:
  // What is sent first, and the answer to it. As it lies in memory: values of tensors go
  // over the same connections so, and members with another order of bytes find out here.
  struct Hello {
    std::uint64_t magic = 0;
    std::uint64_t key = 0;
    std::uint32_t size = 0;
    std::uint32_t from = 0;
    std::uint32_t to = 0;
    std::uint32_t welcome = 0;  // in an answer: 1 if the sender was expected
  };
  struct Half {  // of a connection that is being made
    OwnedFd fd;
    bool dialled = false;
    bool said = false;       // of a dialled one: the hello is sent
    std::uint32_t peer = 0;  // of a dialled one
    Hello heard{};
    std::size_t bytes = 0;  // of it
  };
  enum class Progress : std::uint8_t { kGoesOn, kMet, kTurnedAway };

  [[nodiscard]] Status dial(std::uint32_t peer, const std::string& address);
  void accept_all();
  [[nodiscard]] Result<Progress> go_on(Half& half);
  [[nodiscard]] Status say_hello(Half& half);
  [[nodiscard]] Result<Progress> judge_answer(const Half& half) const;
  [[nodiscard]] Progress judge_hello(Half& half);
  [[nodiscard]] bool expects(const Hello& hello) const;
  [[nodiscard]] Status wait(MonoTime until);
  [[nodiscard]] std::string missing() const;

  const Self self_;
  const OwnedFd& listener_;
  const OwnedFd& wake_;
  std::vector<std::uint32_t> peers_;
  std::vector<Half> halves_;
  std::map<std::uint32_t, OwnedFd> met_;
  std::vector<pollfd> polled_;
  int not_accepted_ = 0;  // errno: who dials cannot be taken now
};

}  // namespace antdt::trainer
