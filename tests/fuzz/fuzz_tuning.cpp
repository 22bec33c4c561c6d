// Any text as a tuning table: it is refused with the line's number, or its entries survive being written and
// read again.
#include <string>

#include "gpu/tuning_table.h"
#include "one_pass.h"
#include "types/error.h"

using namespace phonebit::engine;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    const gpu::TuningTable table = gpu::TuningTable::parse(text, "table");
    const std::string written = table.text();
    phonebit::fuzz::require(gpu::TuningTable::parse(written, "table").text() == written,
                            "a table that was written reads as itself");
    gpu::DeviceFacts device;
    device.name = "device";
    for (const gpu::TuningEntry& entry : table.entries())
      table.choices({entry.op, entry.shape, entry.shape}, device);
  } catch (const Error& error) {
    phonebit::fuzz::require(
        error.code() == ErrorCode::input && std::string(error.what()).rfind("table:", 0) == 0,
        "a refusal names the line");
  }
  return 0;
}
