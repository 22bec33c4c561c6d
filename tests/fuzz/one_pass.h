// A network of whatever file, run once through the C interface.
#pragma once

#include <phonebit/phonebit_c.h>

#include <cstdint>
#include <string>
#include <vector>

namespace phonebit::fuzz {

/// Ends the program, which the fuzzer reports with the input that did it, unless the claim holds.
void require(bool holds, const char* claim);
/// The same of a call that must succeed.
void succeed(phonebit_status status, const char* call);

/// Bytes of each output. Those of f32 tensors have one pattern for all values that are not numbers, whose
/// bits no processor promises.
using Outputs = std::vector<std::vector<uint8_t>>;

/// Inputs of small whole numbers, and room for outputs. The network must outlive it.
class OnePass {
 public:
  explicit OnePass(phonebit_network* network);
  /// Runs and gives the status; `outputs` are set where it is PHONEBIT_OK.
  phonebit_status run();
  phonebit_status start(phonebit_job** job);
  Outputs outputs() const;

  std::vector<phonebit_input> inputs;
  std::vector<phonebit_output> results;

 private:
  phonebit_network* network_;
  std::vector<std::vector<uint8_t>> input_memory_, result_memory_;
  std::vector<phonebit_type> result_types_;
};

}  // namespace phonebit::fuzz
