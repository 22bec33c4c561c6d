// The public C++ interface: load a .pbit file, run it.
//
//   phonebit::Network network = phonebit::Network::load("model.pbit");
//   std::vector<float> scores(network.outputs()[0].elements());
//   network.forward({{pixels, pixel_bytes}}, {{scores.data(), scores.size() * sizeof(float)}});
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "phonebit/error.h"

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
  size_t file_bytes;         ///< mapped file, shared with the page cache
};

struct Options {
  /// Threads of a forward pass, the caller included; 0: one for each processor that the process may use.
  int threads = 0;
  /// Instruction set; empty: the one that PHONEBIT_CPU names, else the best of this machine.
  std::string isa;
  /// Largest sum of activations, scratch and packed weights that a file may ask for.
  uint64_t max_memory_bytes = uint64_t{4} << 30;
};

/// One instruction set of this build.
struct IsaInfo {
  std::string name;
  std::string features;
  bool supported;  ///< by this machine
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
  /// Reads, checks and prepares a file (which must stay unchanged meanwhile and afterwards; replacing it by
  /// renaming is fine). Blocks for the time of reading it once. Throws Error: input (path), format (content),
  /// device (ISA, memory).
  static Network load(const std::string& path, const Options& options = {});

  Network(Network&&) noexcept;
  Network& operator=(Network&&) noexcept;
  ~Network();

  const std::vector<TensorInfo>& inputs() const;
  const std::vector<TensorInfo>& outputs() const;
  /// All activation tensors, inputs and outputs among them.
  const std::vector<TensorInfo>& tensors() const;
  const std::vector<LayerInfo>& layers() const;

  /// Runs `batch` images. Buffer i holds `batch` images of tensor i, one after the other: exactly batch *
  /// bytes() bytes, 4-byte aligned unless u8. Inputs of type f32 must not contain NaN. Blocks; allocates
  /// nothing. Throws Error(input), naming the tensor, before anything is computed.
  void forward(const std::vector<InputBuffer>& inputs, const std::vector<OutputBuffer>& outputs,
               int batch = 1);

  /// Milliseconds of each layer for the batch: the median of `repeats` runs after one warm-up. Allocates.
  std::vector<double> profile(const std::vector<InputBuffer>& inputs, int batch, int repeats);

  /// Runs `batch` images and copies every tensor out; `tensors` has one buffer for each of tensors().
  /// Allocates.
  void activations(const std::vector<InputBuffer>& inputs, const std::vector<OutputBuffer>& tensors,
                   int batch = 1);

  /// Runs layer `index` alone: `operands` are the tensors in layers()[index].inputs, `results` those in
  /// .outputs. Where a tensor is listed twice, the later buffer counts. Allocates.
  void run_op(size_t index, const std::vector<InputBuffer>& operands,
              const std::vector<OutputBuffer>& results, int batch = 1);

  /// Indices into tensors() of what layer `index` reads and writes, in the order of LayerInfo.
  const std::vector<int>& layer_inputs(size_t index) const;
  const std::vector<int>& layer_outputs(size_t index) const;

  MemoryInfo memory() const;
  /// JSON, or empty. Not parsed here.
  const std::string& metadata() const;
  /// Name of the instruction set in use.
  const char* isa() const;
  int threads() const;

 private:
  class Implementation;
  explicit Network(std::unique_ptr<Implementation> implementation);
  std::unique_ptr<Implementation> implementation_;
};

/// The instruction sets of this build, best first.
std::vector<IsaInfo> instruction_sets();

/// "0.1.0".
const char* version();

}  // namespace phonebit
