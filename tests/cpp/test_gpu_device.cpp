// The GPU layer on a device of no API, which records what it is asked (docs/extending.md, "A GPU API").
#include "analysis/op_tensors.h"
#include "check_error.h"
#include "gpu/executor.h"
#include "gpu/program_cache.h"
#include "gpu/test_problems.h"
#include "null_device.h"
#include "temporary_folder.h"

namespace {

using namespace phonebit::engine;
using namespace phonebit::engine::gpu;
using namespace phonebit::engine::test;

TEST_CASE("the GPU layer drives a device of no API") {
  const auto device = std::make_shared<NullDevice>();
  const auto problem = std::move(test_problems("binary_conv2d").front());
  const loader::Model& model = problem->model;
  const loader::Op& op = model.ops[0];
  ProgramCache programs(device, "");
  Options options;
  options.max_memory_bytes = uint64_t{1} << 30;
  Executor executor(model, device, programs, options);
  executor.set_layer(0, {"bconv2d_tiled", {}});
  CHECK(device->calls == Calls{"compile bconv2d_tiled"});
  executor.prepare(2);

  const int input = analysis::tensors_read(op)[0], output = analysis::tensors_written(op)[0];
  const std::vector<std::vector<std::byte>> operands = problem->operands();
  executor.write(input, operands[0].data(), 2, true);
  executor.enqueue(false, nullptr);
  std::vector<std::byte> results(2 * model.tensor(output).bytes());
  executor.read(output, results.data(), 2, true);

  REQUIRE(device->calls.size() == 4);
  CHECK(device->calls[1] == "write activations");
  CHECK(device->calls[3] == "read activations");
  // Both images' pixels; the input comes first, the output last.
  const int pixels = 2 * static_cast<int>(model.output(op).pixels());
  const std::string& launch = device->calls[2];
  CAPTURE(launch);
  CHECK(launch.rfind("bconv2d_tiled(0," + std::to_string(pixels) + ",activations,weights,", 0) == 0);
  CHECK(launch.find(",activations,) of") != std::string::npos);

  const std::vector<double> milliseconds = executor.run_timed(Cancellation());
  REQUIRE(milliseconds.size() == 1);
  CHECK(milliseconds[0] == doctest::Approx(3.0));
}

TEST_CASE("a kernel whose results are wrong is not used") {
  const auto device = std::make_shared<NullDevice>();
  const auto problem = std::move(test_problems("binary_conv2d").front());
  ProgramCache programs(device, "");
  const TemporaryFolder folder;
  Options options;
  options.max_memory_bytes = uint64_t{1} << 30;
  options.cache_directory = folder.path();
  Executor executor(problem->model, device, programs, options);
  check_error(ErrorCode::device, {"no kernel", "failed the self-test", "a device of no API"}, "a null device",
              [&] { executor.prepare_layer(0); });
}

}  // namespace
