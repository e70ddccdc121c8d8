#include "trainer/c_api/alone/local_link.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>

#include "core/check.h"

namespace antdt::capi {

Result<std::unique_ptr<LocalLink>> LocalLink::open(LocalJobConfig config) {
  OwnedFd readable(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (readable.get() < 0) return fail_errno(ErrorKind::kIo, errno, "cannot make an eventfd");
  return std::unique_ptr<LocalLink>(new LocalLink(std::move(config), std::move(readable)));
}

transport::SendOutcome LocalLink::send(const wire::Packet& packet) {
  std::vector<wire::Packet> answers;
  const Status heard = job_.hear(packet, answers);
  ANTDT_CHECK(heard.has_value(), "this process cannot read what it said: {}",
              heard.error().message);
  if (answers.empty()) return transport::SendOutcome::kSent;
  for (wire::Packet& answer : answers) answers_.push_back(std::move(answer));
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(readable_.get(), &one, sizeof one);
  return transport::SendOutcome::kSent;
}

std::optional<wire::Packet> LocalLink::receive() {
  if (answers_.empty()) {
    std::uint64_t count = 0;
    [[maybe_unused]] const ssize_t got = ::read(readable_.get(), &count, sizeof count);
    return {};
  }
  wire::Packet next = std::move(answers_.front());
  answers_.pop_front();
  return next;
}

}  // namespace antdt::capi
