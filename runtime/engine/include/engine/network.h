// The engine as one class: load a .pbit file, run it. Users include phonebit/phonebit.h instead.
//
//   phonebit::Network network = phonebit::Network::load("model.pbit");
//   std::vector<float> scores(network.outputs()[0].elements());
//   network.forward({{pixels, pixel_bytes}}, {{scores.data(), scores.size() * sizeof(float)}});
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "types/error.h"
#include "types/options.h"
#include "types/plan.h"

namespace phonebit {

/// Element type of a tensor in memory.
enum class ElementType {
  bit,  ///< -1 or +1, packed: 32 channels in a u32 word, least significant bit first, bit 1 = +1, unused bits
        ///< 0
  u8,
  f32,
};

/// An activation tensor: (height, width, channels), channels innermost, one image.
struct TensorInfo {
  std::string name;
  ElementType dtype;
  int height, width, channels;

  int64_t elements() const { return int64_t{height} * width * channels; }
  /// Bytes of one image in a buffer; a packed pixel has ceil(channels / 32) words.
  size_t bytes() const;
};

/// What the channels of a picture are; none: the input is no picture.
enum class ColorOrder { none, gray, rgb, bgr, rgba };

/// How a picture of another size gets the size of the input (docs/preprocessing.md).
enum class Resize {
  stretch,       ///< to the input's size, whatever becomes of its proportions
  shorter_side,  ///< shorter side to resize_to, then the input's size out of the centre
  letterbox,     ///< as large as fits with its proportions, in the centre; fill_level around it
};

/// How a picture is resampled; bilinear and bicubic widen their window when they shrink a picture.
enum class Interpolation { nearest, bilinear, bicubic };

/// What a picture of levels 0..255 becomes before the network reads it, as the training did it. The engine
/// never applies it: forward() takes what an input declares, levels (u8) or values (f32). Of a u8 input, the
/// network computes the values itself; scale and offset tell which.
struct Preprocessing {
  int input;  ///< index in Network::inputs()
  ColorOrder color_order;
  Resize resize;
  int resize_to;   ///< pixels
  int fill_level;  ///< 0..255
  Interpolation interpolation;
  double low, high;  ///< what levels 0 and 255 are before mean and deviation
  /// Of each channel, in the unit of low and high; all four are equal where an input has more channels.
  double mean[4], deviation[4];

  /// Level u of a channel stands for the value u * scale(channel) + offset(channel).
  float scale(int channel) const;
  float offset(int channel) const;
};

/// How the channels of a detector's output are arranged (docs/detection.md has the formulas).
enum class HeadKind {
  yolov2 = 1,  ///< for each anchor in turn: x, y, w, h, objectness, classes
};

/// A box prior: its size in cells of the output map.
struct Anchor {
  float width, height;
};

/// What boxes the numbers of an output mean. The engine never applies it: forward() gives the numbers.
struct DetectionHead {
  int output;  ///< index in Network::outputs()
  HeadKind kind;
  std::vector<Anchor> anchors;
};

/// One layer: one op of the file.
struct LayerInfo {
  std::string name;                  ///< the training framework's name
  std::string kind;                  ///< "binary_conv2d", ...
  std::string kernel;                ///< what serves it on this machine
  int64_t macs;                      ///< multiply-accumulates of one image
  bool binary;                       ///< whether these are of -1/+1 by -1/+1
  int64_t weight_bytes;              ///< of all its constants in the file
  std::vector<std::string> inputs;   ///< tensors that it reads: operands, then those of its steps, in order
  std::vector<std::string> outputs;  ///< tensors that it writes
};

/// Memory in bytes.
struct MemoryInfo {
  size_t arena_bytes;        ///< activations of one image
  size_t lower_bound_bytes;  ///< the least that any placement of them needs
  size_t scratch_bytes;      ///< padded or re-coded inputs, shared by all layers
  size_t weight_bytes;       ///< weights as the kernels like them
  size_t file_bytes;         ///< of the file: a copy, or shared where it is used in place
};

/// One instruction set of this build.
struct IsaInfo {
  std::string name;
  std::string features;
  bool supported;  ///< by this machine
};

/// One OpenCL device.
struct OpenClDeviceInfo {
  int index;  ///< in device names: "gpu:0"
  std::string name, platform, vendor, family, version, driver_version;
  bool is_gpu;
  int compute_units, clock_mhz;
  uint64_t global_bytes, local_bytes;
  std::vector<std::pair<std::string, bool>> capabilities;    ///< "images", "half", "command_buffer", ...
  std::vector<std::pair<std::string, std::string>> kernels;  ///< op and shape class, kernel with parameters
  void* id;                                                  ///< cl_device_id
};

/// How a network came up on an OpenCL device.
struct StartupInfo {
  int programs_built = 0, programs_loaded = 0, cache_entries_rejected = 0, self_tests_run = 0;
  double build_ms = 0.0;
  bool uses_command_buffer = false;
};

/// A caller's device memory: cl_mem and the first byte in it.
struct DeviceBuffer {
  void* memory;
  size_t offset;
};

/// What a layer takes on two processors inside a network, in microseconds.
struct LayerTimes {
  double total;     ///< from one such layer to the next, waiting for each other and handing over included
  double cpu, gpu;  ///< the parts alone; 0: no part
};

/// One kernel launch of a layer.
struct DispatchInfo {
  std::string kernel, choice;  ///< kernel file; the choice with its parameters
  size_t global[3], local[3];  ///< work-items
};

/// How a CPU and a GPU work together in a loaded network.
struct CoexecInfo {
  Sharing sharing;
  Synchronization synchronization;
  bool is_on_cpu_alone;  ///< the GPU has failed, or the plan leaves it out, or the CPU won the trial
  bool is_on_gpu_alone;  ///< the GPU won the trial
  bool is_on_trial;      ///< the fastest is not known yet
  /// Milliseconds of an image, medians of the trial; 0 before its end, and of who took no part.
  double plan_ms, cpu_ms, gpu_ms;
};

/// One kernel variant's self-test.
struct SelfTestResult {
  std::string op, choice;
  bool passed;
  std::string detail;
};

/// A caller's memory; the engine neither keeps nor frees it.
struct InputBuffer {
  const void* data;
  size_t bytes;
};
struct OutputBuffer {
  void* data;
  size_t bytes;
};

/// A loaded network. Move-only; owns its memory and its threads.
///
/// Thread-safety: every member may be called from any thread. forward, profile, activations and run_op of one
/// object take turns; different objects run at the same time. Buffers of a call are used only until it
/// returns; they must not overlap. Errors: every failure is a phonebit::Error, and the object stays usable.
class Network {
 public:
  /// Reads, checks and prepares a file; it may change or vanish afterwards, unless Options::in_place. Blocks
  /// for the time of reading it once. Throws Error: input (path), format (content), device (ISA, memory).
  static Network load(const std::string& path, const Options& options = {});

  /// The same for the bytes of a file in memory.
  static Network load_memory(const void* data, size_t bytes, const Options& options = {});
  /// The same for `bytes` bytes from `offset` of an open file; 0: to its end. The descriptor may be closed
  /// afterwards.
  static Network load_descriptor(int descriptor, int64_t offset, int64_t bytes, const Options& options = {});

  Network(Network&&) noexcept;
  Network& operator=(Network&&) noexcept;
  ~Network();

  const std::vector<TensorInfo>& inputs() const;
  const std::vector<TensorInfo>& outputs() const;
  /// All activation tensors, inputs and outputs among them.
  const std::vector<TensorInfo>& tensors() const;
  const std::vector<LayerInfo>& layers() const;

  /// What pictures become before they are inputs, where the file tells; at most one record an input.
  const std::vector<Preprocessing>& preprocessing() const;
  /// What boxes the outputs mean, where the file tells; at most one record an output.
  const std::vector<DetectionHead>& detection() const;
  /// Class names, one a channel of the first output, or one a class of its boxes; empty where the file has
  /// none.
  const std::vector<std::string>& labels() const;

  /// Runs `batch` images. Buffer i holds `batch` images of tensor i, one after the other: exactly batch *
  /// bytes() bytes, 4-byte aligned unless u8. Inputs of type f32 must not contain NaN. Blocks; allocates
  /// nothing. Throws Error(input), naming the tensor, before anything is computed.
  void forward(const std::vector<InputBuffer>& inputs, const std::vector<OutputBuffer>& outputs,
               int batch = 1);

  /// Passes that run or wait for their turn now throw Error(cancelled) as soon as they can: the CPU stops
  /// between layers, a GPU finishes what it was given, both together finish the image. Other measurements
  /// than profile() end when they are done. Later passes are not concerned. Does not block.
  void cancel();

  /// Milliseconds of each layer in the last forward pass that was neither cancelled nor failed, for its whole
  /// batch; on "gpu+cpu" the slower processor's. Passes of forward_on_device do not count. Throws
  /// Error(input) without Options::profiling, or before the first pass.
  std::vector<double> last_profile() const;

  /// Milliseconds of each layer for the batch: the median of `repeats` runs after one warm-up. Allocates.
  std::vector<double> profile(const std::vector<InputBuffer>& inputs, int batch, int repeats);

  /// Runs `batch` images and copies every tensor out; `tensors` has one buffer for each of tensors().
  /// Allocates.
  void activations(const std::vector<InputBuffer>& inputs, const std::vector<OutputBuffer>& tensors,
                   int batch = 1);

  /// Runs layer `index` alone: `operands` are the tensors in layers()[index].inputs, `results` those in
  /// .outputs. Where a tensor is listed twice, the later buffer counts. Operands hold values that the layers
  /// before can give: a layer that reads bits as floats may count on -1 and +1. Allocates.
  void run_op(size_t index, const std::vector<InputBuffer>& operands,
              const std::vector<OutputBuffer>& results, int batch = 1);

  /// Indices into tensors() of what layer `index` reads and writes, in the order of LayerInfo.
  const std::vector<int>& layer_inputs(size_t index) const;
  const std::vector<int>& layer_outputs(size_t index) const;

  /// Enqueues `batch` images on buffers of the network's OpenCL context and returns; done when the queue is.
  /// Inputs are not checked for NaN. Throws Error(input) on a CPU network, or where a buffer is too small.
  void forward_on_device(const std::vector<DeviceBuffer>& inputs, const std::vector<DeviceBuffer>& outputs,
                         int batch);

  /// Kernels with parameters that could serve layer `index` here, the present one first. Empty on the CPU.
  std::vector<std::string> candidates(size_t index) const;
  /// Milliseconds of layer `index` with such a kernel by the device's clock, median of `repeats`, on random
  /// operands; `is_equal`: whether its results are those of the kernel that serves now. Throws Error(input)
  /// for a choice that cannot serve, Error(device) when it fails.
  double measure_choice(size_t index, const std::string& choice, int batch, int repeats, bool* is_equal);
  /// The tuning table's line that makes `choice` serve layers like this one on this device.
  std::string tuning_line(size_t index, const std::string& choice) const;

  /// For a layer of a network on "gpu+cpu": the least of up to `repeats` runs on random content with these
  /// parts (absent: that processor does nothing), whatever the plan says. Allocates, and may compile. Throws
  /// Error(input) for parts that cannot be, or on other devices.
  LayerTimes measure_layer(size_t index, const std::optional<OutputPart>& cpu,
                           const std::optional<OutputPart>& gpu, int repeats);
  /// The launches by which the GPU would compute a part. Throws as measure_layer.
  std::vector<DispatchInfo> dispatch(size_t index, const OutputPart& gpu);
  /// What plans for these two processors are kept under: GPU, driver, instruction set, threads. Empty on one
  /// processor.
  std::string plan_key() const;
  /// The plan in force; without parts on one processor.
  ExecutionPlan plan() const;
  /// Throws Error(input) on one processor.
  CoexecInfo coexec() const;

  /// "cpu:avx512", "gpu:0 NVIDIA H200", "gpu:0 Mali-G610 + cpu:neon".
  std::string device() const;
  /// What a user should know: kernels that failed the self-test at load; a GPU that failed since. This one,
  /// coexec(), memory() and startup() wait for a pass that runs.
  std::vector<std::string> warnings() const;
  StartupInfo startup() const;
  /// The OpenCL objects in use; all null on the CPU. Owned by the network.
  OpenClHandles opencl() const;

  MemoryInfo memory() const;
  /// JSON, or empty. Not parsed here.
  const std::string& metadata() const;
  /// Name of the instruction set in use, or "opencl".
  const char* isa() const;
  int threads() const;

 private:
  class Implementation;
  class Turn;
  explicit Network(std::unique_ptr<Implementation> implementation);
  /// `open` gives the file's bytes; `source` names them in errors.
  template <class Open>
  static Network load_from(const std::string& source, const Options& options, const Open& open);
  std::unique_ptr<Implementation> implementation_;
};

/// The instruction sets of this build, best first.
std::vector<IsaInfo> instruction_sets();

/// Makes the engine load this OpenCL library instead of the system's; before anything else uses OpenCL.
void use_opencl_library(const std::string& path);

/// The OpenCL devices of this machine, GPUs first; empty where there is no OpenCL.
std::vector<OpenClDeviceInfo> opencl_devices();

/// Why there is no OpenCL device, or empty.
std::string opencl_error();

/// Compares every kernel variant that could serve on the device of `options` with the CPU backend. `again`:
/// even those with a cached result.
std::vector<SelfTestResult> opencl_self_test(const Options& options, bool again = false);

/// "0.1.0".
const char* version();

}  // namespace phonebit
