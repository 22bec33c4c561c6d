/* The layout of version 1 where pointers have 64 bits. Later versions add fields after these, or none. */
#include <stddef.h>

#include "phonebit/phonebit_c.h"

#define LAST_FIELD(type, field, offset) \
  _Static_assert(sizeof(void*) != 8 || offsetof(type, field) == (offset), #type " has moved")
#define FIXED(type, bytes) _Static_assert(sizeof(void*) != 8 || sizeof(type) == (bytes), #type " has changed")

LAST_FIELD(phonebit_device_info, capabilities, 96);
LAST_FIELD(phonebit_core_info, is_little, 20);
LAST_FIELD(phonebit_tensor_info, bytes, 32);
LAST_FIELD(phonebit_layer_info, weight_bytes, 40);
LAST_FIELD(phonebit_memory_info, file_bytes, 40);
LAST_FIELD(phonebit_startup_info, uses_command_buffer, 32);
LAST_FIELD(phonebit_detection, anchors, 16);
LAST_FIELD(phonebit_coexec_info, gpu_ms, 40);
LAST_FIELD(phonebit_picture, yuv, 88);
LAST_FIELD(phonebit_preprocessing, deviation, 72);
LAST_FIELD(phonebit_energy_source_info, period_ms, 32);
LAST_FIELD(phonebit_energy_result, step_mj, 40);
LAST_FIELD(phonebit_layer_times, gpu_us, 24);
LAST_FIELD(phonebit_dispatch, local, 48);

/* Without struct_size: never another. */
FIXED(phonebit_input, 16);
FIXED(phonebit_output, 16);
FIXED(phonebit_part, 16);
FIXED(phonebit_planned_part, 28);
FIXED(phonebit_anchor, 8);
