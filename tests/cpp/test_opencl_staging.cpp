// Copies between arrays of the host and buffers of a device, by either way.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "gpu/staging.h"
#include "opencl/context.h"
#include "opencl_device.h"

namespace {

using namespace phonebit::engine;
using namespace phonebit::engine::gpu;
using phonebit::engine::opencl::Context;
using phonebit::engine::opencl::devices;

TEST_CASE("what is uploaded comes back, in pieces and by several threads") {
  if (!has_opencl_device()) return;
  const auto context = Context::create(devices().front());
  threads::ThreadPool pool(3);
  std::mt19937 random(5);
  for (const Staging::Way way : {Staging::Way::pinned, Staging::Way::mapped}) {
    Staging up(context, way), down(context, way);
    for (const size_t bytes :
         {size_t{1}, size_t{1} << 20, (size_t{1} << 20) + 3, size_t{5000001}, size_t{7}}) {
      CAPTURE(static_cast<int>(way));
      CAPTURE(bytes);
      const std::unique_ptr<DeviceMemory> buffer = context->buffer(bytes, nullptr, "test");
      std::vector<std::byte> data(bytes), back(bytes);
      for (std::byte& byte : data) byte = static_cast<std::byte>(random());
      const std::vector<std::byte> sent = data;
      const size_t middle = bytes / 3;  // two parts, the first of them perhaps empty
      for (const auto& [begin, end] : {std::pair{size_t{0}, middle}, std::pair{middle, bytes}})
        if (begin < end)
          CHECK(up.upload(context->queue(), *buffer, data.data(), begin, end, bytes, false, pool) == end);
      std::fill(data.begin(), data.end(), std::byte{0});  // it was read
      down.download(context->queue(), *buffer, bytes);
      down.take(back.data(), pool);
      CHECK(back == sent);
    }
    const std::unique_ptr<DeviceMemory> buffer = context->buffer(64, nullptr, "test");
    Staging abandoned(context, way);
    abandoned.download(context->queue(), *buffer, 64);  // its end waits
  }
}

TEST_CASE("the first value that is not finite is found while values are copied") {
  if (!has_opencl_device()) return;
  const auto context = Context::create(devices().front());
  threads::ThreadPool pool(3);
  constexpr size_t kCount = 1000003, kBytes = kCount * sizeof(float);
  const std::unique_ptr<DeviceMemory> buffer = context->buffer(kBytes, nullptr, "test");
  for (const Staging::Way way : {Staging::Way::pinned, Staging::Way::mapped}) {
    std::vector<float> values(kCount, 1.5f);
    const auto first_bad = [&] {
      Staging staging(context, way);
      const size_t at =
          staging.upload(context->queue(), *buffer, reinterpret_cast<const std::byte*>(values.data()), 0,
                         kBytes, kBytes, true, pool);
      context->queue().finish();
      return at;
    };
    CHECK(first_bad() >= kCount);
    values[kCount - 1] = std::nanf("");
    CHECK(first_bad() == kCount - 1);
    values[131072] = -INFINITY;
    CHECK(first_bad() == 131072);
  }
}

}  // namespace
