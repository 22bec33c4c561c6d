// A cache entry of any key and content is found again; one in whose file anything changed is rejected, and no
// file, whatever is in it, passes for another.
#include <fuzzer/FuzzedDataProvider.h>

#include <fstream>
#include <iterator>
#include <string>

#include "../cpp/temporary_folder.h"
#include "gpu/binary_store.h"
#include "one_pass.h"

using phonebit::engine::gpu::BinaryStore;
using phonebit::engine::gpu::StoredBinary;
using phonebit::fuzz::require;

namespace {

/// A store in a folder of this process.
const BinaryStore& store() {
  static const phonebit::engine::test::TemporaryFolder folder;
  static const BinaryStore instance(folder.path());
  return instance;
}

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary).write(content.data(), static_cast<std::streamsize>(content.size()));
}

/// `content` with bytes cut off, added or changed.
std::string damaged(std::string content, FuzzedDataProvider& bytes) {
  switch (bytes.ConsumeIntegralInRange(0, 3)) {
    case 0:
      return content.substr(0, bytes.ConsumeIntegralInRange<size_t>(0, content.size()));
    case 1:
      return content + bytes.ConsumeRandomLengthString(64);
    case 2:
      return bytes.ConsumeRemainingBytesAsString();
    default:
      for (int i = bytes.ConsumeIntegralInRange(1, 3); i > 0; --i)
        content[bytes.ConsumeIntegralInRange<size_t>(0, content.size() - 1)] = bytes.ConsumeIntegral<char>();
      return content;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  FuzzedDataProvider bytes(data, size);
  const std::string key = bytes.ConsumeRandomLengthString(32);
  const std::string binary = "x" + bytes.ConsumeRandomLengthString(256);
  store().store(key, binary);
  require(store().load(key).binary == binary, "what was stored is found");

  const std::string path = store().path(key);
  const std::string intact = content_of(path);
  const std::string changed = damaged(intact, bytes);
  write(path, changed);
  const StoredBinary found = store().load(key);
  require(found.binary.has_value() == (changed == intact), "an entry that changed is rejected");
  require(found.is_rejected == (changed != intact), "a rejection is told");
  std::remove(path.c_str());
  return 0;
}
