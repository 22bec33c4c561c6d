// In place of layers.cpp in a library without layers chained by hand.
#include "phonebit/phonebit_layers_c.h"
#include "status.h"
#include "types/fail.h"

static phonebit_status absent() {
  return phonebit::c_api::guarded([] {
    phonebit::fail_absent("layers chained by hand", "PHONEBIT_LAYERS",
                          "or load the .pbit file that another build saved");
  });
}

phonebit_status phonebit_builder_create(const char* /*name*/, phonebit_builder** /*builder*/) {
  return absent();
}

void phonebit_builder_destroy(phonebit_builder* /*builder*/) {}

phonebit_status phonebit_builder_input(phonebit_builder* /*builder*/, const char* /*name*/,
                                       phonebit_type /*type*/, int32_t /*height*/, int32_t /*width*/,
                                       int32_t /*channels*/, int32_t* /*tensor*/) {
  return absent();
}

phonebit_status phonebit_builder_conv2d(phonebit_builder* /*builder*/, int32_t /*input*/,
                                        const phonebit_conv2d* /*layer*/, int32_t* /*output*/) {
  return absent();
}

phonebit_status phonebit_builder_dense(phonebit_builder* /*builder*/, int32_t /*input*/,
                                       const phonebit_dense* /*layer*/, int32_t* /*output*/) {
  return absent();
}

phonebit_status phonebit_builder_max_pool(phonebit_builder* /*builder*/, int32_t /*input*/,
                                          const phonebit_pool* /*layer*/, int32_t* /*output*/) {
  return absent();
}

phonebit_status phonebit_builder_average_pool(phonebit_builder* /*builder*/, int32_t /*input*/,
                                              const phonebit_pool* /*layer*/, int32_t* /*output*/) {
  return absent();
}

phonebit_status phonebit_builder_pointwise(phonebit_builder* /*builder*/, int32_t /*input*/,
                                           const char* /*name*/, const phonebit_epilogue* /*epilogue*/,
                                           int32_t* /*output*/) {
  return absent();
}

phonebit_status phonebit_builder_softmax(phonebit_builder* /*builder*/, int32_t /*input*/,
                                         const char* /*name*/, int32_t* /*output*/) {
  return absent();
}

phonebit_status phonebit_builder_tensor(const phonebit_builder* /*builder*/, int32_t /*tensor*/,
                                        phonebit_tensor_info* /*info*/) {
  return absent();
}

phonebit_status phonebit_builder_output(phonebit_builder* /*builder*/, int32_t /*tensor*/) {
  return absent();
}

phonebit_status phonebit_builder_set_labels(phonebit_builder* /*builder*/, const char* const* /*labels*/,
                                            int32_t /*count*/) {
  return absent();
}

phonebit_status phonebit_builder_set_preprocessing(phonebit_builder* /*builder*/, int32_t /*input*/,
                                                   const phonebit_preprocessing* /*rule*/) {
  return absent();
}

phonebit_status phonebit_builder_network(const phonebit_builder* /*builder*/,
                                         const phonebit_options* /*options*/,
                                         phonebit_network** /*network*/) {
  return absent();
}

phonebit_status phonebit_builder_save(const phonebit_builder* /*builder*/, const char* /*path*/) {
  return absent();
}
