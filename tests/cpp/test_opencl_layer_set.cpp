// Parts of layers on the first OpenCL device: inside they are the whole result, outside nothing is written.
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "analysis/op_part.h"
#include "analysis/op_tensors.h"
#include "check_error.h"
#include "gpu/executor.h"
#include "gpu/layer_parts.h"
#include "gpu/layer_set.h"
#include "gpu/test_problems.h"
#include "opencl/context.h"
#include "opencl_device.h"

namespace {

using namespace phonebit::engine;
using namespace phonebit::engine::gpu;
using phonebit::engine::opencl::Context;
using phonebit::engine::opencl::devices;

using Bytes = std::vector<std::byte>;

constexpr auto kPattern = std::byte{0xA5};

/// Each tensor in memory of its own, shared virtual or not.
class OwnMemory final : public TensorMemory {
 public:
  OwnMemory(const loader::Model& model, Device& device, bool is_shared) : device_(device) {
    for (const loader::Tensor& tensor : model.tensors)
      memory_.push_back(device.buffer(tensor.bytes(), nullptr, "a tensor",
                                      is_shared ? Device::Use::shared : Device::Use::mapped));
  }
  const DeviceMemory& memory(int tensor) const override { return *memory_[static_cast<size_t>(tensor)]; }
  bool is_half(int) const override { return false; }
  bool is_shared(int, int) const override { return false; }

  void write(int tensor, const Bytes& content, size_t bytes) {
    if (std::byte* const shared = memory(tensor).address())
      std::memcpy(shared, content.data(), bytes);
    else
      device_.queue().write(memory(tensor), Region::of_bytes(0, bytes), content.data(), true);
  }
  Bytes read(int tensor, size_t bytes) {
    Bytes content(bytes);
    device_.queue().finish();
    if (const std::byte* const shared = memory(tensor).address())
      std::memcpy(content.data(), shared, bytes);
    else
      device_.queue().read(memory(tensor), Region::of_bytes(0, bytes), content.data(), true);
    return content;
  }

 private:
  Device& device_;
  std::vector<std::unique_ptr<DeviceMemory>> memory_;
};

/// Whether a byte of a tensor belongs to the part.
bool is_inside(const loader::Tensor& tensor, size_t byte, const OutputPart& part) {
  const size_t pixel_bytes = tensor.bytes() / static_cast<size_t>(tensor.pixels());
  const auto row = static_cast<int>(byte / pixel_bytes) / tensor.width;
  if (row < part.row_begin || row >= part.row_end) return false;
  const auto at = static_cast<int>(byte % pixel_bytes);
  const bool has_last = part.channel_end == tensor.channels;
  if (tensor.dtype == format::DataType::kBit)
    return 8 * at >= part.channel_begin && (has_last || 8 * at < part.channel_end);
  const int channel = at / (tensor.dtype == format::DataType::kF32 ? 4 : 1);
  return channel >= part.channel_begin && channel < part.channel_end;
}

/// Some parts of an op: one row, the last rows, and channels from the first, from the middle, up to the last.
std::vector<OutputPart> some_parts(const loader::Model& model, const loader::Op& op, std::mt19937& random) {
  const OutputPart whole = analysis::whole_part(model, op);
  const auto below = [&](int count) { return static_cast<int>(random() % static_cast<unsigned>(count)); };
  std::vector<OutputPart> parts{whole};
  for (int i = 0; analysis::can_split_rows(model, op) && i < 3; ++i) {
    const int begin = below(whole.row_end);
    parts.push_back({begin, begin + 1 + below(whole.row_end - begin), 0, whole.channel_end});
  }
  for (int i = 0; analysis::can_split_channels(model, op) && whole.channel_end > 8 && i < 4; ++i) {
    const int begin = i < 2 ? 0 : 8 * below((whole.channel_end - 1) / 8) + 8;
    const int end = i % 2 == 0 ? begin + 8 : whole.channel_end;
    const OutputPart rows = parts[parts.size() > 1 ? 1 : 0];
    parts.push_back({rows.row_begin, rows.row_end, begin, end < whole.channel_end ? end : whole.channel_end});
  }
  return parts;
}

std::string text_of(const OutputPart& part) {
  return " rows " + std::to_string(part.row_begin) + ":" + std::to_string(part.row_end) + " channels " +
         std::to_string(part.channel_begin) + ":" + std::to_string(part.channel_end);
}

struct TestDevice {
  std::shared_ptr<Context> context;
  ProgramCache programs;
  explicit TestDevice(const opencl::ClDevice& device)
      : context(Context::create(device)), programs(context, "") {}
};

/// One layer, whole and in parts. `choice`: null for the tables'.
void check_problem(const TestProblem& problem, TestDevice& device, const KernelChoice* choice,
                   bool uses_svm) {
  const loader::Model& model = problem.model;
  const loader::Op& op = model.ops[0];
  OwnMemory memory(model, *device.context, uses_svm);
  LayerSet layers(model, device.context, device.programs, Options{}, memory);
  const std::vector<Bytes> operands = problem.operands();
  const std::vector<int> read = analysis::tensors_read(op), written = analysis::tensors_written(op);
  for (size_t i = 0; i < read.size(); ++i) memory.write(read[i], operands[i], model.tensor(read[i]).bytes());

  const auto run = [&] {
    for (const int tensor : written) {
      const size_t bytes = model.tensor(tensor).bytes();
      memory.write(tensor, Bytes(bytes, kPattern), bytes);
    }
    layers.enqueue(0, device.context->queue(), nullptr);
    std::vector<Bytes> results;
    for (const int tensor : written) results.push_back(memory.read(tensor, model.tensor(tensor).bytes()));
    return results;
  };
  choice != nullptr ? layers.set(0, *choice) : layers.prepare(0);
  layers.bind(0, 1);
  const std::vector<Bytes> whole = run();

  std::mt19937 random(11);
  const OutputPart all = analysis::whole_part(model, op);
  for (const OutputPart& part : some_parts(model, op, random)) {
    const bool has_all_channels = part.channel_begin == 0 && part.channel_end == all.channel_end;
    if (!has_all_channels) {
      if (choice != nullptr) {
        if (channel_grain(*choice) == 0) continue;
        if (layers.layer(0).channel_grain == 0) layers.set(0, *choice, true);
      }
      layers.prepare_channel_parts(0);
    }
    layers.bind_part(0, part);
    for (const std::string& warning : layers.warnings()) FAIL_CHECK(warning);
    const std::vector<Bytes> results = run();
    for (size_t i = 0; i < written.size(); ++i) {
      const loader::Tensor& tensor = model.tensor(written[i]);
      size_t wrong = 0;
      for (size_t at = 0; at < results[i].size(); ++at)
        wrong += results[i][at] != (is_inside(tensor, at, part) ? whole[i][at] : kPattern) ? 1 : 0;
      CHECK_MESSAGE(wrong == 0, problem.description, " by ", layers.layer(0).kernel, text_of(part), ": ",
                    wrong, " bytes of ", tensor.name);
    }
  }
}

/// What a file says of a window is checked where an operator has one. (A driver may hide a division by zero.)
TEST_CASE("a window where an operator has none is ignored") {
  const auto problem = std::move(test_problems("pad").front());
  loader::Op& op = problem->model.ops[0];
  op.record.kernel_h = op.record.kernel_w = 3;
  op.record.dilation_h = op.record.dilation_w = 0;
  CHECK(geometry_defines(problem->model, op).find("KERNEL_H") == nullptr);
}

/// A tile of 32 filters cannot begin at channel 8: the next kernel of the table runs that part.
TEST_CASE("a part that a kernel cannot compute goes to the next choice") {
  if (!has_opencl_device()) return;
  TestDevice device(devices()[0]);
  for (const auto& problem : test_problems("binary_conv2d")) {
    const loader::Model& model = problem->model;
    if (!analysis::can_split_channels(model, model.ops[0]) || model.output(model.ops[0]).channels <= 32)
      continue;
    OwnMemory memory(model, *device.context, false);
    Options options;
    const DeviceFacts& facts = device.context->facts();
    const std::string most_specific =
        "binary_conv2d " +
        tuning_query(*op_kernels(model, model.ops[0]).family, layer_facts(model, model.ops[0])).signature +
        " " + facts.vendor + " " + facts.family + " " + table_name(facts.name);
    options.tuning =
        most_specific + " bconv2d_tiled TILE_FILTERS=32 TILE_PIXELS=1\n" + most_specific + " bconv2d_byte\n";
    LayerSet layers(model, device.context, device.programs, options, memory);
    const OutputPart whole = analysis::whole_part(model, model.ops[0]);
    check_error(ErrorCode::internal, {"not prepared"}, "a layer without a kernel",
                [&] { layers.bind(0, 1); });
    layers.prepare(0);
    check_error(ErrorCode::internal, {"not prepared for parts"}, "channels of a whole layer",
                [&] { layers.bind_part(0, {0, whole.row_end, 0, 8}); });
    layers.prepare_channel_parts(0);
    layers.bind_part(0, {0, whole.row_end, 0, 8});
    CHECK(layers.choice(0).kernel == "bconv2d_tiled");
    const std::vector<DispatchInfo> dispatch = layers.dispatch(0);
    REQUIRE(dispatch.size() == 1);
    CHECK(dispatch[0].kernel == "bconv2d_tiled");
    CHECK(dispatch[0].global[1] == 1);
    CHECK(dispatch[0].choice == layers.layer(0).kernel);
    layers.bind_part(0, {0, whole.row_end, 8, whole.channel_end});
    CHECK(layers.choice(0).kernel == "bconv2d_byte");
    return;
  }
  FAIL("no test problem has more than 32 filters");
}

/// Two images through the only layer, which is the first one.
TEST_CASE("a first layer computes image by image") {
  if (!has_opencl_device()) return;
  TestDevice device(devices()[0]);
  Options options;
  options.max_memory_bytes = uint64_t{1} << 30;
  for (const char* name : {"binary_conv2d", "conv2d_u8", "conv2d_f32"}) {
    const auto problem = std::move(test_problems(name).front());
    const loader::Model& model = problem->model;
    const loader::Op& op = model.ops[0];
    Executor executor(model, device.context, device.programs, options);
    executor.prepare_layer(0);
    executor.prepare(2);
    REQUIRE(executor.has_parts_of_first_layer());
    const std::vector<Bytes> operands = problem->operands();
    const std::vector<int> read = analysis::tensors_read(op), written = analysis::tensors_written(op);
    for (size_t i = 0; i < read.size(); ++i) executor.write(read[i], operands[i].data(), 2, true);
    const auto results_of = [&](const auto& enqueue) {
      std::vector<Bytes> results;
      for (const int tensor : written) {
        results.emplace_back(2 * model.tensor(tensor).bytes(), kPattern);
        executor.write(tensor, results.back().data(), 2, true);
      }
      enqueue();
      for (size_t i = 0; i < results.size(); ++i) executor.read(written[i], results[i].data(), 2, true);
      return results;
    };
    const auto enqueue_all = [&] { executor.enqueue(false, nullptr); };
    const std::vector<Bytes> whole = results_of(enqueue_all);
    CHECK(results_of([&] {
            executor.enqueue_first_layer(0, 1);
            executor.enqueue_first_layer(1, 2);
            executor.enqueue(false, nullptr, 1);
          }) == whole);
    CHECK(results_of(enqueue_all) == whole);
    executor.enqueue_first_layer(0, 1);  // an inference that an error ended there
    executor.prepare(2);
    CHECK(results_of(enqueue_all) == whole);
  }
}

TEST_CASE("parts of layers") {
  if (!has_opencl_device()) return;
  TestDevice device(devices()[0]);
  const Target target{device.context->facts(), true};
  size_t count = 0;
  for (const std::string& op : tested_ops()) {
    const auto problems = test_problems(op);
    for (size_t i = 0; i < problems.size(); ++i) {
      const loader::Model& model = problems[i]->model;
      check_problem(*problems[i], device, nullptr, device.context->facts().has_svm_fine && i % 2 == 0);
      ++count;
      // Every kernel with its default parameters, on one problem each.
      for (const char* kernel : op_kernels(model, model.ops[0]).family->kernels) {
        const KernelChoice choice{kernel, {}};
        if (i != problems.size() / 2 || !can_run(model, model.ops[0], target, choice)) continue;
        check_problem(*problems[i], device, &choice, false);
        ++count;
      }
    }
  }
  MESSAGE(count, " layers in parts on ", device.context->facts().name);
}

}  // namespace
