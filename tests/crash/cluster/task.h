// Task, Answer: what lets a simulated user be written from top to bottom although every operation
// calls back. A Task starts when it is awaited or Start is called; destroying it ends it where it
// stands, and what it waits for is then answered to nobody.
// OnlyIf: whoever awaits it goes on only if that is so, else he stands there until he is destroyed.
// Threads: one.
#pragma once

#include <coroutine>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

namespace weir::crash {

class Task {
 public:
  struct promise_type {
    std::coroutine_handle<> awaiting;
    Task get_return_object() {
      return Task(std::coroutine_handle<promise_type>::from_promise(*this));
    }
    std::suspend_always initial_suspend() noexcept { return {}; }
    struct Final {
      bool await_ready() noexcept { return false; }
      std::coroutine_handle<> await_suspend(std::coroutine_handle<promise_type> done) noexcept {
        const auto next = done.promise().awaiting;
        return next ? next : std::noop_coroutine();
      }
      void await_resume() noexcept {}
    };
    Final final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };

  Task() = default;
  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Task& operator=(Task&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Task() {
    if (handle_) handle_.destroy();
  }

  void Start() { handle_.resume(); }
  [[nodiscard]] bool done() const { return !handle_ || handle_.done(); }

  bool await_ready() const noexcept { return false; }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<> awaiting) {
    handle_.promise().awaiting = awaiting;
    return handle_;
  }
  void await_resume() const noexcept {}

 private:
  explicit Task(std::coroutine_handle<promise_type> handle) : handle_(handle) {}
  std::coroutine_handle<promise_type> handle_;
};

struct OnlyIf {
  bool so = false;
  bool await_ready() const noexcept { return so; }
  void await_suspend(std::coroutine_handle<>) const noexcept {}
  void await_resume() const noexcept {}
};

// An operation that calls back once. Whoever awaits it goes on in an event of its own, never inside
// the callback.
template <typename T>
class Answer {
 public:
  using Done = std::function<void(T)>;
  using Begin = std::function<void(Done)>;
  using Later = std::function<void(std::function<void()>)>;
  Answer(Later later, Begin begin) : later_(std::move(later)), begin_(std::move(begin)) {}
  Answer(const Answer&) = delete;
  Answer& operator=(const Answer&) = delete;
  ~Answer() { state_->waiting = nullptr; }

  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> waiting) {
    state_->waiting = waiting;
    begin_([state = state_, later = later_](T value) {
      if (state->value.has_value()) return;
      state->value = std::move(value);
      later([state] {
        if (state->waiting) state->waiting.resume();
      });
    });
  }
  T await_resume() { return *std::move(state_->value); }

 private:
  struct State {
    std::optional<T> value;
    std::coroutine_handle<> waiting;
  };
  const Later later_;
  const Begin begin_;
  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace weir::crash
