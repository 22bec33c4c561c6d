#include "gpu/self_test.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "analysis/op_part.h"
#include "analysis/op_tensors.h"
#include "cpu/cpu_backend.h"
#include "gpu/executor.h"
#include "gpu/first_use.h"
#include "gpu/test_problems.h"
#include "types/fail.h"
#include "types/interrupt.h"

namespace phonebit::engine::gpu {
namespace {

using loader::Op;
using loader::Tensor;

constexpr int kImages = 2;
constexpr const char* kPassed = "passed";  // in files of results

/// Buffers for the tensors of a problem's op.
struct Results {
  std::vector<std::vector<std::byte>> memory;
  std::vector<OutputBuffer> buffers;

  Results(const TestProblem& problem, int images) {
    for (const int tensor : analysis::tensors_written(problem.model.ops[0])) {
      memory.emplace_back(problem.model.tensor(tensor).bytes() * static_cast<size_t>(images));
      buffers.push_back({memory.back().data(), memory.back().size()});
    }
  }
};

/// Empty where both are equal, or within the problem's tolerance; else what differs first.
std::string difference(const TestProblem& problem, const Results& expected, const Results& got) {
  const std::vector<int> written = analysis::tensors_written(problem.model.ops[0]);
  for (size_t i = 0; i < written.size(); ++i) {
    const Tensor& tensor = problem.model.tensor(written[i]);
    size_t wrong = 0, first = 0;
    for (size_t at = 0; at < expected.memory[i].size(); at += 4) {
      uint32_t a, b;
      std::memcpy(&a, expected.memory[i].data() + at, sizeof a);
      std::memcpy(&b, got.memory[i].data() + at, sizeof b);
      if (a == b) continue;
      if (tensor.dtype == format::DataType::kF32) {
        float x, y;
        std::memcpy(&x, &a, sizeof x);
        std::memcpy(&y, &b, sizeof y);
        if (std::fabs(x - y) <= problem.tolerance || (x == 0.0f && y == 0.0f)) continue;
      }
      if (wrong++ == 0) first = at / 4;
    }
    if (wrong > 0)
      return format_text("%s: %zu of %zu words of '%s' differ, the first at %zu", problem.description.c_str(),
                         wrong, expected.memory[i].size() / 4, tensor.name.c_str(), first);
  }
  return "";
}

/// Parts that cover an image once, rows and channels cut about in the middle where they can be. (Once: a
/// residual sum lies in its operand's memory, and adding again is another result.)
std::vector<OutputPart> parts_of(const TestProblem& problem, const KernelChoice& choice) {
  const OutputPart whole = analysis::whole_part(problem.model, problem.model.ops[0]);
  const int grain = channel_grain(choice), channels = whole.channel_end;
  const int row = (whole.row_end + 1) / 2;
  const int channel = std::min((channels / 2 + grain - 1) / grain * grain, channels);
  std::vector<OutputPart> parts;
  for (const auto& [row_begin, row_end] : {std::pair{0, row}, std::pair{row, whole.row_end}}) {
    if (row_begin == row_end) continue;
    parts.push_back({row_begin, row_end, 0, channel});
    if (channel < channels) parts.push_back({row_begin, row_end, channel, channels});
  }
  return parts;
}

std::string run_problem(const TestProblem& problem, const std::shared_ptr<Device>& device,
                        ProgramCache& programs, const KernelChoice& choice, bool has_channel_parts) {
  const int images = has_channel_parts ? 1 : kImages;
  std::vector<std::vector<std::byte>> operands = problem.operands();
  std::vector<InputBuffer> inputs;
  for (const auto& operand : operands) inputs.push_back({operand.data(), operand.size()});

  Results expected(problem, images), got(problem, images);
  Options options;
  options.max_memory_bytes = uint64_t{1} << 30;
  cpu::CpuBackend reference(problem.model, *cpu::select_isa(nullptr), options,
                            std::make_shared<threads::ThreadPool>(1));
  reference.run_op(0, inputs, expected.buffers, images, Cancellation());

  Executor executor(problem.model, device, programs, options);
  executor.set_layer(0, choice, has_channel_parts);
  executor.prepare(images);
  const std::vector<int> read = analysis::tensors_read(problem.model.ops[0]);
  const std::vector<int> written = analysis::tensors_written(problem.model.ops[0]);
  for (size_t i = 0; i < read.size(); ++i) executor.write(read[i], operands[i].data(), images, true);
  if (has_channel_parts) {
    for (const OutputPart& part : parts_of(problem, choice)) executor.enqueue_part(0, part);
  } else {
    executor.enqueue_layer(0, device->queue(), nullptr);
  }
  for (size_t i = 0; i < written.size(); ++i) executor.read(written[i], got.buffers[i].data, images, true);
  return difference(problem, expected, got);
}

}  // namespace

SelfTest::SelfTest(std::shared_ptr<Device> device, ProgramCache& programs, const std::string& directory)
    : device_(std::move(device)), programs_(programs), store_(directory) {}

std::string SelfTest::key(const std::string& op, const KernelChoice& choice, bool has_channel_parts) const {
  return std::string(has_channel_parts ? "self-test of channel parts\n" : "self-test\n") +
         device_->facts().key() + "\n" + device_->build_options(Language::core) + "\n" + op + "\n" +
         choice.full_text() + "\n" + assemble(choice.kernel, {});
}

SelfTestResult SelfTest::result(const std::string& op, const KernelChoice& choice, bool has_channel_parts,
                                bool again) {
  const std::string test_key = key(op, choice, has_channel_parts);
  const auto known = known_.find(test_key);
  if (known != known_.end() && !again) return known->second;
  const StoredBinary stored = again ? StoredBinary{} : store_.load(test_key);
  bool is_lasting = false;
  const std::string told =
      stored.binary ? *stored.binary : run_safely(op, choice, has_channel_parts, again, is_lasting);
  if (is_lasting) store_.store(test_key, told);
  const bool passed = told == kPassed;
  return known_[test_key] = {op, choice.full_text(), passed, passed ? "" : told};
}

std::string SelfTest::run_safely(const std::string& op, const KernelChoice& choice, bool has_channel_parts,
                                 bool again, bool& is_lasting) {
  const FirstUse use(store_, key(op, choice, has_channel_parts), again);
  return use.refusal().empty() ? run(op, choice, has_channel_parts, is_lasting) : use.refusal();
}

std::string SelfTest::run(const std::string& op, const KernelChoice& choice, bool has_channel_parts,
                          bool& is_lasting) {
  ++tests_run_;
  is_lasting = true;
  const Target target{device_->facts(), false};
  for (const auto& problem : test_problems(op)) {
    if (!can_run(problem->model, problem->model.ops[0], target, choice)) continue;
    check_interrupt();
    try {
      const std::string found = run_problem(*problem, device_, programs_, choice, has_channel_parts);
      if (!found.empty()) return found;
    } catch (const BuildError& error) {
      return error.what();
    } catch (const Error& error) {
      if (error.code() != ErrorCode::device) throw;
      is_lasting = false;
      return error.what();
    }
  }
  return kPassed;
}

std::vector<SelfTestResult> test_all_kernels(const std::shared_ptr<Device>& device, const Options& options,
                                             bool again) {
  const std::string directory = cache_directory(options.cache_directory);
  ProgramCache programs(device, directory);
  SelfTest test(device, programs, directory);
  const TuningTable table = tuning_table(options);
  const Target target{device->facts(), false};
  std::vector<SelfTestResult> results;
  for (const std::string& op : tested_ops()) {
    std::set<std::string> tried;
    const auto try_choice = [&](const KernelChoice& choice) {
      if (device->has_program(choice) && tried.insert(choice.full_text()).second)
        results.push_back(test.result(op, choice, false, again));
    };
    for (const auto& problem : test_problems(op)) {
      const Op& problem_op = problem->model.ops[0];
      for (const TuningEntry& entry : table.entries()) {
        if (entry.op == op && can_run(problem->model, problem_op, target, entry.choice))
          try_choice(entry.choice);
      }
      // Each tunable away from its default by itself.
      for (const char* kernel : op_kernels(problem->model, problem_op).family->kernels) {
        if (!has_kernel(kernel)) continue;
        std::vector<KernelChoice> choices{{kernel, {}}};
        for (const Tunable& tunable : tunables(kernel)) {
          for (const int value : tunable.values) choices.push_back({kernel, {{tunable.name, value}}});
        }
        for (const KernelChoice& choice : choices) {
          if (can_run(problem->model, problem_op, target, choice)) try_choice(choice);
        }
      }
    }
  }
  return results;
}

}  // namespace phonebit::engine::gpu
