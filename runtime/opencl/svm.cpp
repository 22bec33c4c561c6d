#include "opencl/svm.h"

#include <algorithm>

#include "opencl/cl_functions.h"
#include "types/fail.h"

namespace phonebit::engine::opencl {

SvmMemory::SvmMemory(const Context& context, size_t bytes, const char* what, Use use)
    : context_(context.get()), data_(nullptr) {
  constexpr cl_uint kAlignment = 64;
  const Device& device = context.device();
  const bool has_atomics = use == with_atomics;
  if (!device.has_svm_fine || (has_atomics && !device.has_svm_atomics) || api().clSVMAlloc == nullptr)
    fail(ErrorCode::device, "%s: %s has no fine-grained shared virtual memory%s", what, device.name.c_str(),
         has_atomics ? " with atomics" : "");
  if (bytes > device.max_buffer_bytes)
    fail(ErrorCode::device, "%s: %zu bytes of shared virtual memory are too many for %s, which allows %llu",
         what, bytes, device.name.c_str(), static_cast<unsigned long long>(device.max_buffer_bytes));
  const cl_bitfield flags =
      CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER | (has_atomics ? CL_MEM_SVM_ATOMICS : 0);
  data_ = api().clSVMAlloc(context_, flags, std::max<size_t>(bytes, 1), kAlignment);
  if (data_ == nullptr)
    fail(ErrorCode::device, "%s: clSVMAlloc: %s gives no %zu bytes", what, device.name.c_str(), bytes);
}

SvmMemory::~SvmMemory() { api().clSVMFree(context_, data_); }

}  // namespace phonebit::engine::opencl
