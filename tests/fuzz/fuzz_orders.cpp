// Any text as the orders.txt of a collection: it is refused with a message, or all its numbers are in range.
#include <string>

#include "../cpp/temporary_folder.h"
#include "one_pass.h"
#include "tools/failure.h"
#include "tools/files.h"
#include "tools/orders.h"

using namespace phonebit::tools;
using phonebit::fuzz::require;

namespace {

/// A folder of this process.
const std::string& folder() {
  static const phonebit::engine::test::TemporaryFolder instance;
  return instance.path();
}

void check(const OrderList& list) {
  require(!list.identity.empty() && !list.ways.empty() && !list.threads.empty(), "the beginning is complete");
  int number = 0;
  for (const Order& order : list.orders) {
    require(order.number == number++ && order.layer >= 0 && order.threads > 0 && order.turns > 0,
            "numbers of an order are in range");
    require(order.file.find('/') == std::string::npos, "files lie in the folder");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  write_bytes(folder() + "/orders.txt", data, size);
  try {
    check(read_orders(folder()));
  } catch (const Failure& failure) {
    require(*failure.what() != '\0', "a refusal has a message");
  }
  return 0;
}
