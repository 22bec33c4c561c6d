// A part of a model that runs on PhoneBit: a .pbit file, and how the other runtime's tensors lie in it.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/network.h"
#include "memory/aligned_buffer.h"

namespace phonebit::engine::plugins {

/// A tensor as the other runtime has it.
struct TensorForm {
  bool is_channels_first = false;  ///< (N, C, H, W), in a file (N, H, W, C); all others have the file's order
  std::vector<int64_t> sizes;      ///< without the batch

  int64_t elements() const;
};

/// What is said of a file: its bytes, and its tensors in order. Of the text that Python writes:
///
///     bytes 81920 in channels_first 3 224 224 out plain 1000
struct PartForm {
  size_t file_bytes = 0;
  std::vector<TensorForm> inputs, outputs;

  /// Throws Error(format) for another text.
  static PartForm of_text(const std::string& text);
};

/// Thread-safe: calls at the same time have a network each, since one network's calls take turns. All share the
/// file's bytes.
class CompiledPart {
 public:
  /// Loads one network. Throws Error: as Network::load_memory, or format if file and form do not fit.
  CompiledPart(const char* file, PartForm form, int threads);

  const PartForm& form() const { return form_; }

  /// Runs `batch` images. Inputs are of type f32 or u8 as takes_bytes() says, outputs are floats; null for an
  /// output that is not wanted. Throws Error(input) as Network::forward.
  void run(const std::vector<const void*>& inputs, const std::vector<float*>& outputs, int batch);

  bool takes_bytes(size_t input) const { return takes_bytes_[input]; }

 private:
  /// A network, and memory for tensors that lie in another order, or in bits.
  struct Runner {
    Network network;
    std::vector<memory::AlignedBuffer> inputs, outputs;
    memory::AlignedBuffer bits;

    void forward(const PartForm& form, const std::vector<const void*>& from, const std::vector<float*>& to,
                 int batch);
    InputBuffer input(size_t index, const TensorForm& form, const void* data, int batch);
    OutputBuffer output(size_t index, const TensorForm& form, float* data, int batch);
    /// Copies an output that the network could not write where it is wanted.
    void write(size_t index, const TensorForm& form, float* data, int batch);
  };
  std::unique_ptr<Runner> loaded() const;
  std::unique_ptr<Runner> taken();
  void give(std::unique_ptr<Runner> runner);
  void check_fits(const Network& network) const;

  const PartForm form_;
  const int threads_;
  memory::AlignedBuffer file_;
  std::vector<bool> takes_bytes_;
  std::mutex lock_;
  std::vector<std::unique_ptr<Runner>> idle_;
};

}  // namespace phonebit::engine::plugins
