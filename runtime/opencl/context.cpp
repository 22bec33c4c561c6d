#include "opencl/context.h"

#include <algorithm>
#include <vector>

#include "opencl/cl_functions.h"
#include "types/fail.h"

namespace phonebit::engine::opencl {
namespace {

/// clCreateCommandQueueWithProperties is not called on devices of OpenCL 1.2: a loader has it even where its driver
/// does not.
std::unique_ptr<Queue> create_queue(cl_context context, const ClDevice& device, cl_bitfield flags,
                                    Hint hint) {
  cl_int status = CL_SUCCESS;
  const bool is_modern =
      device.version.rfind("OpenCL 1.", 0) != 0 && api().clCreateCommandQueueWithProperties != nullptr;
  const std::vector<cl_properties> list = queue_properties(device, flags, hint);
  Handle<cl_command_queue> queue(
      is_modern ? api().clCreateCommandQueueWithProperties(context, device.id, list.data(), &status)
                : api().clCreateCommandQueue(context, device.id, flags, &status));
  check(status, is_modern ? "clCreateCommandQueueWithProperties" : "clCreateCommandQueue",
        device.name.c_str());
  return std::make_unique<Queue>(std::move(queue));
}

void check_is_in_context(cl_context context, cl_device_id device) {
  size_t bytes = 0;
  check(api().clGetContextInfo(context, CL_CONTEXT_DEVICES, 0, nullptr, &bytes), "clGetContextInfo");
  std::vector<cl_device_id> devices(bytes / sizeof(cl_device_id));
  check(api().clGetContextInfo(context, CL_CONTEXT_DEVICES, bytes, devices.data(), nullptr),
        "clGetContextInfo");
  if (std::find(devices.begin(), devices.end(), device) == devices.end())
    fail(ErrorCode::input, "the device is not one of the context's; pass a device of the context");
}

template <class T>
T queue_info(cl_command_queue queue, cl_uint name) {
  T value{};
  check(api().clGetCommandQueueInfo(queue, name, sizeof value, &value, nullptr), "clGetCommandQueueInfo");
  return value;
}

size_t size_of(cl_mem memory) {
  size_t bytes = 0;
  check(api().clGetMemObjectInfo(memory, CL_MEM_SIZE, sizeof bytes, &bytes, nullptr), "clGetMemObjectInfo");
  return bytes;
}

void check_queue(cl_command_queue queue, cl_context context, cl_device_id device) {
  if (queue_info<cl_context>(queue, CL_QUEUE_CONTEXT) != context ||
      queue_info<cl_device_id>(queue, CL_QUEUE_DEVICE) != device)
    fail(ErrorCode::input, "the queue belongs to another context or device; pass a queue of this one");
  if ((queue_info<cl_bitfield>(queue, CL_QUEUE_PROPERTIES) & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) != 0)
    fail(ErrorCode::input, "the queue is out of order; pass an in-order queue");
}

/// "-cl-std=CL1.2 ..."; atomics need 2.0 or 3.0, as the device's version says.
std::string options_for(const ClDevice& device, gpu::Language language) {
  const bool is_2 = device.version.rfind("OpenCL 2.", 0) == 0;
  // -w: a driver may print its compiler's warnings on the user's terminal (NVIDIA's: "1 warning generated.").
  std::string options = "-w -cl-std=";
  options += language == gpu::Language::core ? "CL1.2" : is_2 ? "CL2.0" : "CL3.0";
  if (device.has_exact_division) options += " -cl-fp32-correctly-rounded-divide-sqrt";
  return options;
}

}  // namespace

std::vector<intptr_t> context_properties(const ClDevice& device, Hint hint) {
  std::vector<intptr_t> list = {CL_CONTEXT_PLATFORM, reinterpret_cast<intptr_t>(device.platform)};
  if (device.has_performance_hint && hint != Hint::none)
    list.insert(list.end(), {CL_CONTEXT_PERF_HINT_QCOM,
                             hint == Hint::power ? CL_PERF_HINT_LOW_QCOM : CL_PERF_HINT_HIGH_QCOM});
  list.push_back(0);
  return list;
}

std::vector<cl_properties> queue_properties(const ClDevice& device, cl_bitfield flags, Hint hint) {
  std::vector<cl_properties> list = {CL_QUEUE_PROPERTIES, flags};
  if (device.has_throttle_hint && hint != Hint::none)
    list.insert(list.end(), {CL_QUEUE_THROTTLE_KHR,
                             hint == Hint::power ? CL_QUEUE_THROTTLE_LOW_KHR : CL_QUEUE_THROTTLE_HIGH_KHR});
  list.push_back(0);
  return list;
}

Context::Context(const ClDevice& device, Hint hint)
    : device_(device),
      hint_(hint),
      core_options_(options_for(device, gpu::Language::core)),
      atomics_options_(options_for(device, gpu::Language::atomics)) {}

std::shared_ptr<Context> Context::create(const ClDevice& device, Hint hint) {
  const std::shared_ptr<Context> result(new Context(device, hint));
  const std::vector<intptr_t> properties = context_properties(device, hint);
  cl_int status = CL_SUCCESS;
  result->context_ =
      Handle<cl_context>(api().clCreateContext(properties.data(), 1, &device.id, nullptr, nullptr, &status));
  check(status, "clCreateContext", device.name.c_str());
  result->queue_ = create_queue(result->get(), device, 0, hint);
  return result;
}

std::shared_ptr<Context> Context::borrow(const GpuHandles& handles) {
  const auto context = static_cast<cl_context>(handles.context);
  const auto device = static_cast<cl_device_id>(handles.device);
  const auto queue = static_cast<cl_command_queue>(handles.queue);
  if (context == nullptr || device == nullptr)
    fail(ErrorCode::input, "the context and the device must not be null");
  check_is_in_context(context, device);
  if (queue != nullptr) check_queue(queue, context, device);
  const std::shared_ptr<Context> result(new Context(describe_device(device), Hint::none));
  retain(context);
  result->context_ = Handle<cl_context>(context);
  if (queue != nullptr) {
    retain(queue);
    result->queue_ = std::make_unique<Queue>(Handle<cl_command_queue>(queue));
  } else {
    result->queue_ = create_queue(context, result->device_, 0, Hint::none);
  }
  return result;
}

Queue& Context::profiling_queue() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!profiling_queue_) profiling_queue_ = create_queue(get(), device_, CL_QUEUE_PROFILING_ENABLE, hint_);
  return *profiling_queue_;
}

std::unique_ptr<gpu::Queue> Context::new_queue() const { return create_queue(get(), device_, 0, hint_); }
GpuHandles Context::handles() const { return {get(), device_.id, queue_->get()}; }

Handle<cl_mem> Context::create_buffer(cl_bitfield flags, size_t bytes, const void* data,
                                      const char* what) const {
  if (bytes > device_.max_buffer_bytes)
    fail(ErrorCode::device, "%s: a buffer of %zu bytes is too large for %s, which allows %llu", what, bytes,
         device_.name.c_str(), static_cast<unsigned long long>(device_.max_buffer_bytes));
  cl_int status = CL_SUCCESS;
  Handle<cl_mem> result(api().clCreateBuffer(get(), CL_MEM_READ_WRITE | flags, std::max<size_t>(bytes, 1),
                                             const_cast<void*>(data), &status));
  if (status != CL_SUCCESS)
    check(status, "clCreateBuffer", format_text("%s: %zu bytes", what, bytes).c_str());
  return result;
}

/// Where memory is shared with the host, drivers map without copies what they allocated for the host as well.
std::unique_ptr<gpu::DeviceMemory> Context::buffer(size_t bytes, const void* data, const char* what,
                                                   Use use) const {
  if (use == Use::shared || use == Use::shared_with_atomics) return shared_buffer(bytes, what, use);
  if (bytes == 0) data = nullptr;
  const bool is_mapped = use == Use::mapped || device_.has_unified_memory;
  const cl_bitfield flags =
      (is_mapped ? CL_MEM_ALLOC_HOST_PTR : 0) | (data != nullptr ? CL_MEM_COPY_HOST_PTR : 0);
  return std::make_unique<Memory>(create_buffer(flags, bytes, data, what));
}

/// Fine-grained shared virtual memory of OpenCL 2.0.
std::unique_ptr<gpu::DeviceMemory> Context::shared_buffer(size_t bytes, const char* what, Use use) const {
  constexpr cl_uint kAlignment = 64;
  const bool has_atomics = use == Use::shared_with_atomics;
  if (!device_.has_svm_fine || (has_atomics && !device_.has_svm_atomics) || api().clSVMAlloc == nullptr)
    fail(ErrorCode::device, "%s: %s has no fine-grained shared virtual memory%s", what, device_.name.c_str(),
         has_atomics ? " with atomics" : "");
  if (bytes > device_.max_buffer_bytes)
    fail(ErrorCode::device, "%s: %zu bytes of shared virtual memory are too many for %s, which allows %llu",
         what, bytes, device_.name.c_str(), static_cast<unsigned long long>(device_.max_buffer_bytes));
  const cl_bitfield flags =
      CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER | (has_atomics ? CL_MEM_SVM_ATOMICS : 0);
  void* const address = api().clSVMAlloc(get(), flags, std::max<size_t>(bytes, 1), kAlignment);
  if (address == nullptr)
    fail(ErrorCode::device, "%s: clSVMAlloc: %s gives no %zu bytes", what, device_.name.c_str(), bytes);
  auto result = std::make_unique<Memory>(get(), address);
  if (!has_atomics) result->put_over(create_buffer(CL_MEM_USE_HOST_PTR, bytes, address, what));
  return result;
}

std::unique_ptr<gpu::DeviceMemory> Context::borrow(const DeviceBuffer& buffer, size_t bytes,
                                                   const char* tensor) const {
  const auto memory = static_cast<cl_mem>(buffer.memory);
  if (memory == nullptr) fail(ErrorCode::input, "tensor '%s': the device buffer is null", tensor);
  cl_context owner = nullptr;
  check(api().clGetMemObjectInfo(memory, CL_MEM_CONTEXT, sizeof owner, &owner, nullptr), "clGetMemObjectInfo",
        tensor);
  if (owner != get())
    fail(ErrorCode::input,
         "tensor '%s': the device buffer belongs to another OpenCL context; load the network with that "
         "context, or its queue, as device",
         tensor);
  const size_t size = size_of(memory);
  if (buffer.offset > size || size - buffer.offset < bytes)
    fail(ErrorCode::input,
         "tensor '%s': got a device buffer of %zu bytes with %zu to skip, expected %zu bytes", tensor, size,
         buffer.offset, bytes);
  return std::make_unique<Memory>(memory);
}

std::unique_ptr<gpu::DeviceMemory> Context::part(const gpu::DeviceMemory& whole, size_t offset,
                                                 size_t bytes) const {
  if (offset % device_.base_align_bytes != 0)
    fail(ErrorCode::internal, "a sub-buffer at %zu is not aligned to %zu bytes", offset,
         device_.base_align_bytes);
  const cl_mem parent = object_of(whole);
  const size_t parent_bytes = size_of(parent);  // NVIDIA's driver takes regions that reach beyond the end
  if (offset > parent_bytes || bytes > parent_bytes - offset)
    fail(ErrorCode::internal, "a sub-buffer of %zu bytes at %zu is not inside its buffer of %zu bytes", bytes,
         offset, parent_bytes);
  const cl_buffer_region region = {offset, bytes};
  cl_int status = CL_SUCCESS;
  Handle<cl_mem> result(api().clCreateSubBuffer(parent, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &status));
  if (status != CL_SUCCESS)
    check(status, "clCreateSubBuffer", format_text("%zu bytes at %zu", bytes, offset).c_str());
  return std::make_unique<Memory>(std::move(result));
}

std::unique_ptr<gpu::DeviceMemory> Context::image(size_t width, size_t height, const void* data,
                                                  const char* what) const {
  if (!device_.has_images) fail(ErrorCode::device, "%s: %s has no images", what, device_.name.c_str());
  if (width > device_.image2d_max_width || height > device_.image2d_max_height)
    fail(ErrorCode::device, "%s: an image of %zux%zu is too large for %s, which allows %zux%zu", what, width,
         height, device_.name.c_str(), device_.image2d_max_width, device_.image2d_max_height);
  const cl_image_format format = {CL_RGBA, CL_UNSIGNED_INT32};
  cl_image_desc description{};
  description.image_type = CL_MEM_OBJECT_IMAGE2D;
  description.image_width = width;
  description.image_height = height;
  const cl_bitfield flags = CL_MEM_READ_WRITE | (data != nullptr ? CL_MEM_COPY_HOST_PTR : 0);
  cl_int status = CL_SUCCESS;
  Handle<cl_mem> result(
      api().clCreateImage(get(), flags, &format, &description, const_cast<void*>(data), &status));
  if (status != CL_SUCCESS)
    check(status, "clCreateImage", format_text("%s: %zux%zu", what, width, height).c_str());
  return std::make_unique<Memory>(std::move(result));
}

}  // namespace phonebit::engine::opencl
