// @kernel   poll_flags   the device's side of a synchronization point: it tells the host where it is, then waits for the host
// @math     flags[GPU] = reached; until flags[CPU] >= awaited; flags[TIMED_OUT] = 1 after so many spins
// @args     atomic_int* flags, int reached, int awaited, int spins
// @geometry global = (1), local = (1)
// @requires fine-grained shared virtual memory with atomics; OpenCL C 2.0, or 3.0 with acquire and release
// @ref      none: it is no layer   @source fine-grained co-execution, section 4
//
// In an in-order queue this kernel stands between what the host waits for and what waits for the host: no command ends,
// and none is enqueued, at the synchronization point. Both counters are monotonic, so waiting for a value already
// reached returns at once.
//
// Words that different sides write lie a cache line apart. After a time-out no later point waits: the host looks at
// flags[TIMED_OUT] before it believes any result.
#define GPU 0
#define CPU 16
#define TIMED_OUT 32

// PoCL 3.1 has atomics on shared memory but not this name; its device are the host's own processors.
#if __OPENCL_C_VERSION__ >= 300 && !defined(__opencl_c_atomic_scope_all_devices)
#define EVERYWHERE memory_scope_device
#else
#define EVERYWHERE memory_scope_all_svm_devices
#endif

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void poll_flags(__global volatile atomic_int* flags, int reached,
                                                                        int awaited, int spins) {
  atomic_store_explicit(&flags[GPU], reached, memory_order_release, EVERYWHERE);
  for (int spin = 0; spin < spins; ++spin) {
    if (atomic_load_explicit(&flags[CPU], memory_order_acquire, EVERYWHERE) >= awaited) return;
    if (atomic_load_explicit(&flags[TIMED_OUT], memory_order_relaxed, EVERYWHERE) != 0) return;
  }
  atomic_store_explicit(&flags[TIMED_OUT], 1, memory_order_release, EVERYWHERE);
}
