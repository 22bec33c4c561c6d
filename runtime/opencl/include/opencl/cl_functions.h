// OpenCL's functions as a table of pointers, and the constants that the engine uses.
//
// Names and numbers are those of the OpenCL 3.0 specification and of extensions, whose functions are where they
// are used (recording.cpp).
#pragma once

#include "opencl/cl_api.h"

namespace phonebit::engine::opencl {

inline constexpr cl_int CL_SUCCESS = 0;
inline constexpr cl_int CL_COMPLETE = 0, CL_QUEUED = 3;
inline constexpr cl_int CL_OUT_OF_RESOURCES = -5;
inline constexpr cl_int CL_BUILD_PROGRAM_FAILURE = -11;

inline constexpr cl_uint CL_PLATFORM_NAME = 0x0902;

inline constexpr cl_bitfield CL_DEVICE_TYPE_CPU = 1u << 1, CL_DEVICE_TYPE_GPU = 1u << 2,
                             CL_DEVICE_TYPE_ALL = 0xFFFFFFFF;
inline constexpr cl_uint CL_DEVICE_TYPE = 0x1000;
inline constexpr cl_uint CL_DEVICE_MAX_COMPUTE_UNITS = 0x1002;
inline constexpr cl_uint CL_DEVICE_MAX_WORK_GROUP_SIZE = 0x1004;
inline constexpr cl_uint CL_DEVICE_MAX_CLOCK_FREQUENCY = 0x100C;
inline constexpr cl_uint CL_DEVICE_MAX_MEM_ALLOC_SIZE = 0x1010;
inline constexpr cl_uint CL_DEVICE_IMAGE2D_MAX_WIDTH = 0x1011, CL_DEVICE_IMAGE2D_MAX_HEIGHT = 0x1012;
inline constexpr cl_uint CL_DEVICE_IMAGE_SUPPORT = 0x1016;
inline constexpr cl_uint CL_DEVICE_MEM_BASE_ADDR_ALIGN = 0x1019;
inline constexpr cl_uint CL_DEVICE_SINGLE_FP_CONFIG = 0x101B;
inline constexpr cl_uint CL_DEVICE_GLOBAL_MEM_SIZE = 0x101F, CL_DEVICE_LOCAL_MEM_SIZE = 0x1023;
inline constexpr cl_uint CL_DEVICE_AVAILABLE = 0x1027, CL_DEVICE_COMPILER_AVAILABLE = 0x1028;
inline constexpr cl_uint CL_DEVICE_NAME = 0x102B, CL_DEVICE_VENDOR = 0x102C, CL_DRIVER_VERSION = 0x102D;
inline constexpr cl_uint CL_DEVICE_VERSION = 0x102F, CL_DEVICE_EXTENSIONS = 0x1030;
inline constexpr cl_uint CL_DEVICE_PLATFORM = 0x1031;
inline constexpr cl_uint CL_DEVICE_HOST_UNIFIED_MEMORY = 0x1035;
inline constexpr cl_uint CL_DEVICE_SVM_CAPABILITIES = 0x1053;
inline constexpr cl_uint CL_DEVICE_COMMAND_BUFFER_REQUIRED_QUEUE_PROPERTIES_KHR = 0x12AA,
                         CL_DEVICE_RECORDABLE_QUEUE_MAX_SIZE = 0x41DE;
inline constexpr cl_uint CL_DEVICE_COMPUTE_CAPABILITY_MAJOR_NV = 0x4000;
inline constexpr cl_uint CL_DEVICE_COMPUTE_CAPABILITY_MINOR_NV = 0x4001;

inline constexpr cl_bitfield CL_FP_FMA = 1u << 5, CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT = 1u << 7;
inline constexpr cl_bitfield CL_DEVICE_SVM_COARSE_GRAIN_BUFFER = 1u << 0,
                             CL_DEVICE_SVM_FINE_GRAIN_BUFFER = 1u << 1, CL_DEVICE_SVM_ATOMICS = 1u << 3;

inline constexpr intptr_t CL_CONTEXT_PLATFORM = 0x1084;
inline constexpr intptr_t CL_CONTEXT_PERF_HINT_QCOM = 0x40C2, CL_PERF_HINT_HIGH_QCOM = 0x40C3,
                          CL_PERF_HINT_LOW_QCOM = 0x40C5;
inline constexpr cl_uint CL_CONTEXT_DEVICES = 0x1081;

inline constexpr cl_uint CL_QUEUE_CONTEXT = 0x1090, CL_QUEUE_DEVICE = 0x1091, CL_QUEUE_PROPERTIES = 0x1093,
                         CL_QUEUE_THROTTLE_KHR = 0x1097;
inline constexpr cl_bitfield CL_QUEUE_THROTTLE_HIGH_KHR = 1u << 0, CL_QUEUE_THROTTLE_LOW_KHR = 1u << 2;
inline constexpr cl_bitfield CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE = 1u << 0,
                             CL_QUEUE_PROFILING_ENABLE = 1u << 1, CL_QUEUE_RECORDABLE_QCOM = 1u << 30;

inline constexpr cl_bitfield CL_MEM_READ_WRITE = 1u << 0, CL_MEM_USE_HOST_PTR = 1u << 3,
                             CL_MEM_ALLOC_HOST_PTR = 1u << 4, CL_MEM_COPY_HOST_PTR = 1u << 5;
inline constexpr cl_bitfield CL_MEM_SVM_FINE_GRAIN_BUFFER = 1u << 10, CL_MEM_SVM_ATOMICS = 1u << 11;
inline constexpr cl_bitfield CL_MAP_READ = 1u << 0, CL_MAP_WRITE = 1u << 1,
                             CL_MAP_WRITE_INVALIDATE_REGION = 1u << 2;
inline constexpr cl_uint CL_MEM_OBJECT_IMAGE2D = 0x10F1;
inline constexpr cl_uint CL_MEM_SIZE = 0x1102, CL_MEM_CONTEXT = 0x1106;
inline constexpr cl_uint CL_BUFFER_CREATE_TYPE_REGION = 0x1220;
inline constexpr cl_uint CL_RGBA = 0x10B5, CL_UNSIGNED_INT32 = 0x10DC;

inline constexpr cl_uint CL_PROGRAM_NUM_DEVICES = 0x1162, CL_PROGRAM_DEVICES = 0x1163,
                         CL_PROGRAM_BINARY_SIZES = 0x1165, CL_PROGRAM_BINARIES = 0x1166;
inline constexpr cl_uint CL_PROGRAM_BUILD_LOG = 0x1183;
inline constexpr cl_uint CL_KERNEL_WORK_GROUP_SIZE = 0x11B0;

inline constexpr cl_uint CL_EVENT_COMMAND_EXECUTION_STATUS = 0x11D3;
inline constexpr cl_uint CL_PROFILING_COMMAND_QUEUED = 0x1280, CL_PROFILING_COMMAND_START = 0x1282,
                         CL_PROFILING_COMMAND_END = 0x1283;

struct cl_image_format {
  cl_uint image_channel_order;
  cl_uint image_channel_data_type;
};

struct cl_image_desc {
  cl_uint image_type;
  size_t image_width, image_height, image_depth, image_array_size, image_row_pitch, image_slice_pitch;
  cl_uint num_mip_levels, num_samples;
  cl_mem mem_object;
};

struct cl_buffer_region {
  size_t origin, size;
};

// clang-format off
/// Those that a command waits for, and its own.
#define PHONEBIT_CL_EVENTS cl_uint, const cl_event*, cl_event*
#define PHONEBIT_CL_FUNCTIONS(REQUIRED, OPTIONAL)                                                            \
  REQUIRED(cl_int, clGetPlatformIDs, (cl_uint, cl_platform_id*, cl_uint*))                                   \
  REQUIRED(cl_int, clGetPlatformInfo, (cl_platform_id, cl_uint, size_t, void*, size_t*))                     \
  REQUIRED(cl_int, clGetDeviceIDs, (cl_platform_id, cl_bitfield, cl_uint, cl_device_id*, cl_uint*))          \
  REQUIRED(cl_int, clGetDeviceInfo, (cl_device_id, cl_uint, size_t, void*, size_t*))                         \
  REQUIRED(void*, clGetExtensionFunctionAddressForPlatform, (cl_platform_id, const char*))                   \
  REQUIRED(cl_context, clCreateContext,                                                                      \
           (const intptr_t*, cl_uint, const cl_device_id*, void (*)(const char*, const void*, size_t,        \
            void*), void*, cl_int*))                                                                         \
  REQUIRED(cl_int, clRetainContext, (cl_context))                                                            \
  REQUIRED(cl_int, clReleaseContext, (cl_context))                                                           \
  REQUIRED(cl_int, clGetContextInfo, (cl_context, cl_uint, size_t, void*, size_t*))                          \
  REQUIRED(cl_command_queue, clCreateCommandQueue, (cl_context, cl_device_id, cl_bitfield, cl_int*))         \
  OPTIONAL(cl_command_queue, clCreateCommandQueueWithProperties,                                             \
           (cl_context, cl_device_id, const cl_properties*, cl_int*))                                        \
  REQUIRED(cl_int, clRetainCommandQueue, (cl_command_queue))                                                 \
  REQUIRED(cl_int, clReleaseCommandQueue, (cl_command_queue))                                                \
  REQUIRED(cl_int, clGetCommandQueueInfo, (cl_command_queue, cl_uint, size_t, void*, size_t*))               \
  REQUIRED(cl_mem, clCreateBuffer, (cl_context, cl_bitfield, size_t, void*, cl_int*))                        \
  REQUIRED(cl_mem, clCreateSubBuffer, (cl_mem, cl_bitfield, cl_uint, const void*, cl_int*))                  \
  REQUIRED(cl_mem, clCreateImage,                                                                            \
           (cl_context, cl_bitfield, const cl_image_format*, const cl_image_desc*, void*, cl_int*))          \
  REQUIRED(cl_int, clReleaseMemObject, (cl_mem))                                                             \
  REQUIRED(cl_int, clGetMemObjectInfo, (cl_mem, cl_uint, size_t, void*, size_t*))                            \
  REQUIRED(cl_program, clCreateProgramWithSource,                                                            \
           (cl_context, cl_uint, const char**, const size_t*, cl_int*))                                      \
  REQUIRED(cl_program, clCreateProgramWithBinary,                                                            \
           (cl_context, cl_uint, const cl_device_id*, const size_t*, const unsigned char**, cl_int*,         \
            cl_int*))                                                                                        \
  REQUIRED(cl_int, clBuildProgram,                                                                           \
           (cl_program, cl_uint, const cl_device_id*, const char*, void (*)(cl_program, void*), void*))      \
  REQUIRED(cl_int, clGetProgramInfo, (cl_program, cl_uint, size_t, void*, size_t*))                          \
  REQUIRED(cl_int, clGetProgramBuildInfo, (cl_program, cl_device_id, cl_uint, size_t, void*, size_t*))       \
  REQUIRED(cl_int, clReleaseProgram, (cl_program))                                                           \
  REQUIRED(cl_kernel, clCreateKernel, (cl_program, const char*, cl_int*))                                    \
  REQUIRED(cl_int, clSetKernelArg, (cl_kernel, cl_uint, size_t, const void*))                                \
  OPTIONAL(cl_int, clSetKernelArgSVMPointer, (cl_kernel, cl_uint, const void*))                              \
  OPTIONAL(void*, clSVMAlloc, (cl_context, cl_bitfield, size_t, cl_uint))                                    \
  OPTIONAL(void, clSVMFree, (cl_context, void*))                                                             \
  REQUIRED(cl_int, clGetKernelWorkGroupInfo, (cl_kernel, cl_device_id, cl_uint, size_t, void*, size_t*))     \
  REQUIRED(cl_int, clReleaseKernel, (cl_kernel))                                                             \
  REQUIRED(cl_int, clEnqueueNDRangeKernel,                                                                   \
           (cl_command_queue, cl_kernel, cl_uint, const size_t*, const size_t*, const size_t*,               \
            PHONEBIT_CL_EVENTS))                                                                             \
  REQUIRED(cl_int, clEnqueueReadBuffer,                                                                      \
           (cl_command_queue, cl_mem, cl_bool, size_t, size_t, void*, PHONEBIT_CL_EVENTS))                   \
  REQUIRED(cl_int, clEnqueueWriteBuffer,                                                                     \
           (cl_command_queue, cl_mem, cl_bool, size_t, size_t, const void*, PHONEBIT_CL_EVENTS))             \
  REQUIRED(cl_int, clEnqueueCopyBuffer,                                                                      \
           (cl_command_queue, cl_mem, cl_mem, size_t, size_t, size_t, PHONEBIT_CL_EVENTS))                   \
  REQUIRED(cl_int, clEnqueueCopyBufferToImage,                                                               \
           (cl_command_queue, cl_mem, cl_mem, size_t, const size_t*, const size_t*, PHONEBIT_CL_EVENTS))     \
  REQUIRED(cl_int, clEnqueueReadBufferRect,                                                                  \
           (cl_command_queue, cl_mem, cl_bool, const size_t*, const size_t*, const size_t*, size_t, size_t,  \
            size_t, size_t, void*, PHONEBIT_CL_EVENTS))                                                      \
  REQUIRED(cl_int, clEnqueueWriteBufferRect,                                                                 \
           (cl_command_queue, cl_mem, cl_bool, const size_t*, const size_t*, const size_t*, size_t, size_t,  \
            size_t, size_t, const void*, PHONEBIT_CL_EVENTS))                                                \
  REQUIRED(void*, clEnqueueMapBuffer,                                                                        \
           (cl_command_queue, cl_mem, cl_bool, cl_bitfield, size_t, size_t, PHONEBIT_CL_EVENTS, cl_int*))    \
  REQUIRED(cl_int, clEnqueueUnmapMemObject, (cl_command_queue, cl_mem, void*, PHONEBIT_CL_EVENTS))           \
  REQUIRED(cl_int, clEnqueueMarkerWithWaitList, (cl_command_queue, PHONEBIT_CL_EVENTS))                      \
  REQUIRED(cl_int, clEnqueueBarrierWithWaitList, (cl_command_queue, PHONEBIT_CL_EVENTS))                     \
  REQUIRED(cl_event, clCreateUserEvent, (cl_context, cl_int*))                                               \
  REQUIRED(cl_int, clSetUserEventStatus, (cl_event, cl_int))                                                 \
  REQUIRED(cl_int, clWaitForEvents, (cl_uint, const cl_event*))                                              \
  REQUIRED(cl_int, clGetEventInfo, (cl_event, cl_uint, size_t, void*, size_t*))                              \
  REQUIRED(cl_int, clGetEventProfilingInfo, (cl_event, cl_uint, size_t, void*, size_t*))                     \
  REQUIRED(cl_int, clReleaseEvent, (cl_event))                                                               \
  REQUIRED(cl_int, clFlush, (cl_command_queue))                                                              \
  REQUIRED(cl_int, clFinish, (cl_command_queue))
// clang-format on

/// See cl_api.h. Optional functions (of OpenCL 2.0) are null where the library lacks them; where it has them,
/// a platform of OpenCL 1.2 may still not: look at the device's version or capabilities before a call.
struct Api {
#define PHONEBIT_CL_FIELD(RESULT, NAME, PARAMETERS) RESULT(*NAME) PARAMETERS noexcept = nullptr;
  PHONEBIT_CL_FUNCTIONS(PHONEBIT_CL_FIELD, PHONEBIT_CL_FIELD)
#undef PHONEBIT_CL_FIELD
};

}  // namespace phonebit::engine::opencl
