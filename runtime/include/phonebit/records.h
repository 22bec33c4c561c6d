// Plain values that the C++ interface gives and takes. A part of phonebit.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "phonebit/phonebit_c.h"
#include "phonebit/result.h"

namespace phonebit {
inline namespace v1 {

enum class DeviceKind : int32_t {
  cpu = PHONEBIT_DEVICE_CPU,
  gpu = PHONEBIT_DEVICE_GPU,
  other = PHONEBIT_DEVICE_OTHER,  ///< OpenCL on something else
};

/// An instruction set of this build, or an OpenCL device.
struct DeviceInfo {
  DeviceKind kind;
  std::string name;                    ///< what Options::device takes: "cpu:neon", "gpu:0"
  std::string description;             ///< "Mali-G610"; features of an instruction set
  std::string driver;                  ///< this and all below but the numbers: "" of a CPU
  std::string platform;                ///< "ARM Platform"
  std::string version;                 ///< "OpenCL 3.0 v1.r38"
  std::string vendor;                  ///< as tuning tables call it: "arm"
  std::string family;                  ///< likewise: "valhall"
  std::string capabilities;            ///< separated by blanks: "images half svm_fine"
  bool is_supported;                   ///< whether this machine has the instruction set
  int compute_units;                   ///< of a CPU: processors this process may use
  int clock_mhz;                       ///< 0: unknown
  uint64_t memory_bytes, local_bytes;  ///< 0 of a CPU
};

/// A processor that is online.
struct CoreInfo {
  int index;     ///< the system's number
  int max_mhz;   ///< 0: unknown
  int capacity;  ///< 1024 of the strongest; 0: unknown
  bool is_big, is_little;
};

enum class Type : int32_t {
  bit = PHONEBIT_TYPE_BIT,  ///< 32 channels in a u32 word, least significant bit first, 1 = +1, unused bits 0
  u8 = PHONEBIT_TYPE_U8,
  f32 = PHONEBIT_TYPE_F32,
};

/// An activation tensor: (height, width, channels), channels innermost, one image.
struct TensorInfo {
  std::string name;
  Type type;
  int height, width, channels;
  size_t bytes;  ///< of one image in a buffer

  size_t elements() const {
    return static_cast<size_t>(height) * static_cast<size_t>(width) * static_cast<size_t>(channels);
  }
};

/// One op of the file.
struct LayerInfo {
  std::string name, kind, kernel;  ///< the training framework's name; "binary_conv2d"; what runs it here
  bool is_binary;                  ///< whether its multiply-accumulates are of -1/+1 by -1/+1
  int64_t macs;                    ///< of one image
  uint64_t weight_bytes;           ///< of all its constants in the file
};

/// Of one image, of the weights and of the file.
using MemoryInfo = phonebit_memory_info;

/// How a network came up on an OpenCL device.
struct StartupInfo {
  int programs_built, programs_loaded, cache_entries_rejected, self_tests_run;
  double build_ms;
  bool uses_command_buffer;
};

enum class Sharing : int32_t {
  automatic = PHONEBIT_SHARING_AUTOMATIC,
  copy = PHONEBIT_SHARING_COPY,
  map = PHONEBIT_SHARING_MAP,
  svm = PHONEBIT_SHARING_SVM,
};

enum class Synchronization : int32_t {
  automatic = PHONEBIT_SYNCHRONIZATION_AUTOMATIC,
  events = PHONEBIT_SYNCHRONIZATION_EVENTS,
  user_events = PHONEBIT_SYNCHRONIZATION_USER_EVENTS,
  polling = PHONEBIT_SYNCHRONIZATION_POLLING,
};

/// How a CPU and a GPU work together.
struct CoexecInfo {
  Sharing sharing;
  Synchronization synchronization;
  bool is_on_cpu_alone;  ///< the GPU has failed, or the plan leaves it out, or the CPU won the auto-selection
  bool is_on_gpu_alone;  ///< the GPU won the auto-selection
  bool is_on_trial;      ///< Options::trial: the fastest is not known yet
  /// Milliseconds of an image, medians of the auto-selection; 0 before its end, and of what took no part.
  double plan_ms, cpu_ms, gpu_ms;
};

enum class Processor : int32_t { cpu = PHONEBIT_PROCESSOR_CPU, gpu = PHONEBIT_PROCESSOR_GPU };

/// Rows [row_begin, row_end) and channels [channel_begin, channel_end) of a layer's output.
using Part = phonebit_part;

/// What one processor computes of one layer.
struct PlannedPart {
  int stage;  ///< from 0 without gaps
  Processor processor;
  int layer;
  Part part;
};

/// What a layer takes on two processors inside a network, in microseconds.
struct LayerTimes {
  double total_us;        ///< waiting and data transfer included
  double cpu_us, gpu_us;  ///< the parts alone; 0: no part
};

/// One kernel launch.
struct DispatchInfo {
  std::string kernel, choice;  ///< kernel file; the kernel with its parameters
  uint64_t global[3], local[3];
};

/// One kernel variant, compared with the CPU.
struct SelfTestResult {
  std::string op, kernel;
  bool is_passed;
  std::string detail;
};

enum class Head : int32_t { none = PHONEBIT_HEAD_NONE, yolov2 = PHONEBIT_HEAD_YOLOV2 };

/// What boxes the numbers of an output mean (docs/detection.md).
struct Detection {
  Head head;  ///< none: the file says nothing of boxes
  std::vector<phonebit_anchor> anchors;
};

enum class ImageFormat : int32_t {
  gray = PHONEBIT_PICTURE_GRAY,
  rgb = PHONEBIT_PICTURE_RGB,
  rgba = PHONEBIT_PICTURE_RGBA,  ///< alpha counts only where the network reads four channels
  bgr = PHONEBIT_PICTURE_BGR,
  bgra = PHONEBIT_PICTURE_BGRA,
  nv21 = PHONEBIT_PICTURE_NV21,  ///< planes: Y; V and U interleaved, for every second row and column
  nv12 = PHONEBIT_PICTURE_NV12,  ///< planes: Y; U and V interleaved
  i420 = PHONEBIT_PICTURE_I420,  ///< planes: Y; U; V; with pixel_bytes any YUV_420_888
};

/// How the levels of luma and chroma become red, green and blue.
enum class Yuv : int32_t {
  bt601_full = PHONEBIT_YUV_BT601_FULL,  ///< JPEG and Android's camera frames
  bt601_limited = PHONEBIT_YUV_BT601_LIMITED,
  bt709_limited = PHONEBIT_YUV_BT709_LIMITED,
};

/// An image in the caller's memory.
struct Image {
  ImageFormat format = ImageFormat::rgb;
  int width = 0, height = 0;
  const uint8_t* planes[3] = {};
  int row_bytes[3] = {};    ///< 0: no gap between rows
  int pixel_bytes[3] = {};  ///< from one sample of a plane to the next; 0: the format's own
  int crop_left = 0, crop_top = 0, crop_width = 0, crop_height = 0;  ///< crop_width 0: everything
  int rotation = 0;          ///< clockwise degrees that make it upright, after cropping
  bool is_mirrored = false;  ///< left and right are swapped after rotating
  Yuv yuv = Yuv::bt601_full;
};

/// Other names of these.
using Picture = Image;
using PictureFormat = ImageFormat;

enum class ColorOrder : int32_t {
  none = PHONEBIT_COLOR_NONE,  ///< the file says nothing of images for this input
  gray = PHONEBIT_COLOR_GRAY,
  rgb = PHONEBIT_COLOR_RGB,
  bgr = PHONEBIT_COLOR_BGR,
  rgba = PHONEBIT_COLOR_RGBA,
};

enum class Resize : int32_t {
  stretch = PHONEBIT_RESIZE_STRETCH,
  shorter_side = PHONEBIT_RESIZE_SHORTER_SIDE,
  letterbox = PHONEBIT_RESIZE_LETTERBOX,
};

enum class Interpolation : int32_t {
  nearest = PHONEBIT_INTERPOLATION_NEAREST,
  bilinear = PHONEBIT_INTERPOLATION_BILINEAR,
  bicubic = PHONEBIT_INTERPOLATION_BICUBIC,
};

/// What an image becomes before the network reads it (docs/preprocessing.md).
struct Preprocessing {
  ColorOrder color_order = ColorOrder::none;
  Resize resize = Resize::stretch;
  int resize_to = 0;   ///< pixels; Resize::shorter_side
  int fill_level = 0;  ///< 0..255; Resize::letterbox
  Interpolation interpolation = Interpolation::bilinear;
  double low = 0.0, high = 1.0;  ///< what levels 0 and 255 are before mean and deviation
  double mean[4] = {0.0, 0.0, 0.0, 0.0}, deviation[4] = {1.0, 1.0, 1.0, 1.0};
};

/// A source of energy readings, or a kind of which there is none.
struct EnergySourceInfo {
  std::string name, description;  ///< of a source that is absent: why
  bool is_counter;                ///< counts energy; else tells power, which is sampled
  bool is_available;
  double period_ms;  ///< pace at which it is worth reading
};

struct EnergyResult {
  std::string source;
  bool is_counter;
  double window_s, energy_mj, mean_mw;
  double step_mj;  ///< the resolution; its share of energy_mj is the uncertainty
};

namespace detail {

/// Numbers that a tensor can be made of; bytes are those of any type.
template <class Element>
constexpr bool is_of_tensors =
    std::is_arithmetic_v<Element> &&
    (sizeof(Element) == 1 || std::is_same_v<Element, float> || std::is_same_v<Element, uint32_t>);

/// Containers that somebody else owns the memory of.
template <class Container>
constexpr bool is_view = false;
template <class Element>
constexpr bool is_view<Span<Element>> = true;

template <class Container>
constexpr bool is_never = false;

}  // namespace detail

/// The caller's memory for the images of one tensor, one after the other. The memory must stay until the inference
/// is done; a container must not change its size.
struct Input : phonebit_input {
  Input(const void* memory, size_t size_bytes) : phonebit_input{memory, size_bytes} {}
  /// A std::vector, std::array or Span of numbers.
  template <class Container,
            class Element = std::remove_pointer_t<decltype(std::declval<const Container&>().data())>>
  Input(const Container& container PHONEBIT_LIFETIMEBOUND)
      : Input(container.data(), container.size() * sizeof(Element)) {
    static_assert(detail::is_of_tensors<std::remove_const_t<Element>>,
                  "a tensor is an array of float, of uint8_t, or of uint32_t (words of bits)");
  }
};
struct Output : phonebit_output {
  Output(void* memory, size_t size_bytes) : phonebit_output{memory, size_bytes} {}
  template <class Container,
            class Element = std::remove_pointer_t<decltype(std::declval<Container&>().data())>,
            class = std::enable_if_t<!std::is_const_v<Element>>>
  Output(Container& container PHONEBIT_LIFETIMEBOUND)
      : Output(container.data(), container.size() * sizeof(Element)) {
    static_assert(detail::is_of_tensors<Element>,
                  "a tensor is an array of float, of uint8_t, or of uint32_t (words of bits)");
  }
};
static_assert(sizeof(Input) == sizeof(phonebit_input) && sizeof(Output) == sizeof(phonebit_output));

/// Memory that an inference in the background reads: a container that ends with the call does not compile.
struct KeptInput : Input {
  using Input::Input;
  KeptInput(const Input& input) : Input(input) {}
  template <class Container, class = decltype(std::declval<const Container&>().data())>
  KeptInput(const Container&& container) : Input(container) {
    static_assert(detail::is_view<Container> || detail::is_never<Container>,
                  "this buffer would be gone before the inference reads it; give it a name and keep it");
  }
};
static_assert(sizeof(KeptInput) == sizeof(Input));

}  // namespace v1
}  // namespace phonebit
