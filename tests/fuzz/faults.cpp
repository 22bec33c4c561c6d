// Each allocation, file operation and OpenCL call of a task fails in turn, alone and with all that follow it:
// the task succeeds with the right result or says why not, leaves files whole, and succeeds afterwards.
//
// Usage: faults FOLDER [DEVICE...]: writes to the folder. With devices, only loading and inference on those.
#include <phonebit/phonebit_layers_c.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>

#include "fault_points.h"
#include "one_pass.h"

using namespace phonebit::fuzz;

namespace {

std::string folder;

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct Destroy {
  void operator()(phonebit_options* options) const { phonebit_options_destroy(options); }
  void operator()(phonebit_network* network) const { phonebit_network_destroy(network); }
  void operator()(phonebit_builder* builder) const { phonebit_builder_destroy(builder); }
};
template <class Handle>
using Owned = std::unique_ptr<Handle, Destroy>;

Owned<phonebit_options> options_of(const char* device) {
  phonebit_options* options = nullptr;
  succeed(phonebit_options_create(&options), "options_create");
  Owned<phonebit_options> owned(options);
  succeed(phonebit_options_set_device(options, device), "set_device");
  succeed(phonebit_options_set_threads(options, 3), "set_threads");
  succeed(phonebit_options_set_cache_directory(options, (folder + "/cache").c_str()), "set_cache_directory");
  return owned;
}

/// Something to do, anew each time: the status of the first call that fails.
using Task = std::function<phonebit_status()>;

/// Whether the task came to its end before the operation `number`.
bool run_with(const char* name, const Task& task, Fault kind, int number, bool is_lasting) {
  arm(kind, number, is_lasting);
  const phonebit_status status = task();
  if (!disarm()) {
    succeed(status, name);
    return true;
  }
  const bool is_told = status == PHONEBIT_ERROR_DEVICE || status == PHONEBIT_ERROR_INPUT;
  if (status != PHONEBIT_OK && (!is_told || *phonebit_last_error() == '\0')) {
    std::fprintf(stderr, "%s, operation %d: status %d\n", name, number, status);
    require(false, "a failure of the system is told as one");
  }
  succeed(task(), "the same afterwards");
  return false;
}

void fail_each(const char* name, Fault kind, const Task& task) {
  succeed(task(), name);  // what is made once a process is there from now on
  int number = 1;
  while (!run_with(name, task, kind, number, false)) ++number;
  for (int first = 1; !run_with(name, task, kind, first, true);) ++first;
  std::printf("%s: each of %d operations failed\n", name, number - 1);
  std::fflush(stdout);
  require(number > 1, "there is an operation that can fail");
}

/// A network whose outputs are known.
struct Known {
  explicit Known(const char* name) : path(std::string(PHONEBIT_GOLDEN "/") + name + ".pbit") {
    file = content_of(path);
    expected = *run_loaded([&](phonebit_network** network) {
      return phonebit_network_load_path(path.c_str(), options_of("cpu").get(), network);
    });
  }

  /// Right outputs, or the status of the call that failed.
  template <class Load>
  phonebit_status check(const Load& load) const {
    phonebit_status status = PHONEBIT_OK;
    const std::optional<Outputs> outputs = run_loaded(load, &status);
    const Pause pause;
    require(!outputs || *outputs == expected, "a pass that succeeds is right");
    return status;
  }

  std::string path, file;
  Outputs expected;

 private:
  template <class Load>
  static std::optional<Outputs> run_loaded(const Load& load, phonebit_status* failure = nullptr) {
    phonebit_network* network = nullptr;
    phonebit_status status = load(&network);
    const Owned<phonebit_network> owned(network);
    std::optional<OnePass> pass;
    if (status == PHONEBIT_OK) {
      const Pause pause;
      pass.emplace(network);
    }
    if (pass) status = pass->run();
    if (failure != nullptr) *failure = status;
    const Pause pause;
    if (failure == nullptr) succeed(status, "a pass with nothing armed");
    return status == PHONEBIT_OK ? std::optional(pass->outputs()) : std::nullopt;
  }
};

void fail_loads(const Known& known) {
  const auto options = options_of("cpu"), in_place = options_of("cpu");
  succeed(phonebit_options_set_in_place(in_place.get(), 1), "set_in_place");
  const Task from_path = [&] {
    return known.check([&](phonebit_network** network) {
      return phonebit_network_load_path(known.path.c_str(), options.get(), network);
    });
  };
  fail_each("load and forward: files", Fault::file, from_path);
  fail_each("load and forward: memory", Fault::allocation, from_path);
  fail_each("load in place and forward: files", Fault::file, [&] {
    return known.check([&](phonebit_network** network) {
      return phonebit_network_load_path(known.path.c_str(), in_place.get(), network);
    });
  });
  fail_each("load from memory and forward: memory", Fault::allocation, [&] {
    return known.check([&](phonebit_network** network) {
      return phonebit_network_load_memory(known.file.data(), known.file.size(), options.get(), network);
    });
  });
}

/// Passes in the background.
void fail_jobs(const Known& known) {
  const auto options = options_of("cpu");
  phonebit_network* network = nullptr;
  succeed(phonebit_network_load_path(known.path.c_str(), options.get(), &network), "load_path");
  const Owned<phonebit_network> owned(network);
  OnePass pass(network);
  fail_each("forward in the background: memory", Fault::allocation, [&] {
    phonebit_job* job = nullptr;
    phonebit_status status = pass.start(&job);
    if (status == PHONEBIT_OK) status = phonebit_job_wait(job, -1);
    phonebit_job_destroy(job);
    const Pause pause;
    require(status != PHONEBIT_OK || pass.outputs() == known.expected, "a job that succeeds is right");
    return status;
  });
}

Owned<phonebit_builder> small_network() {
  static const float weights[8 * 27] = {1.0f, -1.0f};
  auto layer_weights = PHONEBIT_INIT(phonebit_weights);
  layer_weights.is_binary = 1;
  layer_weights.values = {weights, 8 * 27};
  auto window = PHONEBIT_INIT(phonebit_window);
  window.kernel_height = window.kernel_width = 3;
  auto layer = PHONEBIT_INIT(phonebit_conv2d);
  layer.out_channels = 8;
  layer.window = &window;
  layer.weights = &layer_weights;
  phonebit_builder* builder = nullptr;
  int32_t image = 0, output = 0;
  phonebit_status status = phonebit_builder_create("small", &builder);
  Owned<phonebit_builder> owned(builder);
  if (status == PHONEBIT_OK)
    status = phonebit_builder_input(builder, "image", PHONEBIT_TYPE_U8, 6, 6, 3, &image);
  if (status == PHONEBIT_OK) status = phonebit_builder_conv2d(builder, image, &layer, &output);
  if (status == PHONEBIT_OK) status = phonebit_builder_output(builder, output);
  return status == PHONEBIT_OK ? std::move(owned) : nullptr;
}

void fail_builder() {
  const std::string path = folder + "/small.pbit";
  {
    std::ofstream(path) << "old";
  }
  const auto builder = small_network();
  const std::string temporary = folder + "/whole.pbit";
  succeed(phonebit_builder_save(builder.get(), temporary.c_str()), "builder_save");
  const std::string whole = content_of(temporary);
  const Task save = [&] {
    {
      const Pause pause;
      std::ofstream(path) << "old";
    }
    const phonebit_status status = phonebit_builder_save(builder.get(), path.c_str());
    const Pause pause;
    const std::string content = content_of(path);
    require(content == (status == PHONEBIT_OK ? whole : "old"), "a file is the old one or the whole new one");
    return status;
  };
  fail_each("save: files", Fault::file, save);
  fail_each("save: memory", Fault::allocation, save);
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) files += entry.is_regular_file();
  require(files == 2, "no temporary file stays");
  fail_each("build: memory", Fault::allocation,
            [&] { return small_network() != nullptr ? PHONEBIT_OK : PHONEBIT_ERROR_DEVICE; });
}

void fail_image(const Known& known) {
  const auto options = options_of("cpu");
  phonebit_network* network = nullptr;
  succeed(phonebit_network_load_path(known.path.c_str(), options.get(), &network), "load_path");
  const Owned<phonebit_network> owned(network);
  OnePass pass(network);
  std::string room(pass.inputs[0].bytes, '\0');
  static const uint8_t pixels[9 * 7 * 3] = {200};
  auto image = PHONEBIT_INIT(phonebit_picture);
  image.format = PHONEBIT_PICTURE_RGB;
  image.width = 9;
  image.height = 7;
  image.planes[0] = pixels;
  fail_each("prepare an image: memory", Fault::allocation, [&] {
    return phonebit_network_prepare_picture(network, 0, &image, nullptr, room.data(), room.size());
  });
}

/// Two layers: what all kinds of layers have in common makes the calls, and a driver takes as long for each program
/// whenever a network is loaded. Binaries and self-test results come from the cache, and may fail to.
void fail_opencl(const char* device) {
  const Known known("rounded_32");
  const auto options = options_of(device);
  const std::string name = std::string("load and forward on ") + device;
  const Task task = [&] {
    return known.check([&](phonebit_network** network) {
      return phonebit_network_load_path(known.path.c_str(), options.get(), network);
    });
  };
  fail_each((name + ": OpenCL").c_str(), Fault::opencl, task);
  fail_each((name + ": files").c_str(), Fault::file, task);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  folder = argv[1];
  for (int i = 2; i < argc; ++i) fail_opencl(argv[i]);
  if (argc > 2) return 0;
  for (const char* name : {"tiny_classifier", "float_layers"}) fail_loads(Known(name));
  fail_jobs(Known("tiny_classifier"));
  fail_builder();
  fail_image(Known("tiny_classifier"));
  return 0;
}
