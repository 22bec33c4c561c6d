#include "coexec/event_synchronizer.h"
#include "coexec/polling_synchronizer.h"

namespace phonebit::engine::coexec {

std::unique_ptr<Synchronizer> make_synchronizer(Synchronization kind, opencl::Context& context,
                                                opencl::ProgramCache& programs,
                                                std::chrono::milliseconds limit) {
  if (kind == Synchronization::polling)
    return std::make_unique<PollingSynchronizer>(context, programs, limit);
  return std::make_unique<EventSynchronizer>(context, kind == Synchronization::user_events);
}

}  // namespace phonebit::engine::coexec
