// The message sockets of an EventLoop. It waits for them with zmq::poll, whose poll set contains
// the epoll set of the file descriptors as one item. Message sockets must be in the poll set
// themselves, because the descriptor that ZeroMQ offers for a socket is edge-triggered.
#include <cerrno>
#include <memory>
#include <utility>
#include <vector>
#include <zmq.hpp>

#include "core/check.h"
#include "core/transport/loop_state.h"
#include "core/transport/socket.h"

namespace antdt {

void EventLoop::watch_handle(void* handle, Callback on_ready) {
  unwatch_handle(handle);
  State& state = *state_;
  state.sockets.push_back({handle, std::make_shared<LoopWatch>(LoopWatch{std::move(on_ready)})});
  if (state.wait_with_sockets) return;
  // items[0] is the epoll set; items[i + 1] belongs to sockets[i].
  state.wait_with_sockets = [items = std::vector<zmq::pollitem_t>()](State& s) mutable {
    if (std::exchange(s.sockets_changed, false)) {
      items.assign(1, {nullptr, s.epoll.get(), ZMQ_POLLIN, 0});
      for (const State::WatchedSocket& socket : s.sockets) {
        items.push_back({socket.handle, 0, ZMQ_POLLIN, 0});
      }
    }
    try {
      zmq::poll(items);
    } catch (const zmq::error_t& error) {
      ANTDT_CHECK(error.num() == EINTR, "polling {} sockets: {}", s.sockets.size(), error.what());
      return false;
    }
    for (std::size_t i = 0; i < s.sockets.size(); ++i) {
      if (items[i + 1].revents != 0) s.ready.push_back(s.sockets[i].watch);
    }
    return items[0].revents != 0;
  };
}

void EventLoop::unwatch_handle(void* handle) {
  std::erase_if(state_->sockets, [&](const State::WatchedSocket& watched) {
    if (watched.handle != handle) return false;
    watched.watch->active = false;
    return true;
  });
  state_->sockets_changed = true;
}

void EventLoop::watch_socket(transport::Socket& socket, Callback on_ready) {
  watch_handle(socket.handle(), std::move(on_ready));
}

void EventLoop::unwatch_socket(transport::Socket& socket) { unwatch_handle(socket.handle()); }

}  // namespace antdt
