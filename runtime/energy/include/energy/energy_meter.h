// A thread that reads a source at its pace, so that a driver which hangs never hangs the caller for ever.
#pragma once

#include <memory>
#include <thread>

#include "energy/energy_source.h"
#include "energy/energy_trace.h"

namespace phonebit::engine::energy {

/// Measures what flows between start() and peek(), read() or stop(). One thread at a time. All but info() block
/// until the source has answered, at most a few seconds.
class Meter {
 public:
  /// Takes a source, which must not be null. One that does not answer for `answer_s` has failed.
  explicit Meter(std::unique_ptr<Source> source, double answer_s = 5.0);
  /// Ends the thread; one whose reading hangs stays with the source.
  ~Meter();
  Meter(const Meter&) = delete;
  Meter& operator=(const Meter&) = delete;

  const SourceInfo& info() const noexcept;

  /// Begins a window with a reading of now; forgets the window before. Throws Error(device) if the source
  /// fails or does not answer.
  void start();

  /// What flowed from start() to a reading of now, however little; the window goes on. Throws Error(input) if
  /// the meter has not been started; Error(device) if the source fails or does not answer.
  Span peek();

  /// The same; also throws Error(device) if the source has stopped, or moved less than twice.
  Span read();

  /// read(), and the thread ends, in case of an error too.
  Span stop();

 private:
  struct Shared;
  void read_now();
  bool end();
  [[noreturn]] void fail_to_answer() const;

  std::shared_ptr<Shared> shared_;  // with the thread
  double answer_s_;
  std::thread thread_;
};

}  // namespace phonebit::engine::energy
