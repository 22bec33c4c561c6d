# Of an installed PhoneBit: find_package(phonebit 0.1 CONFIG REQUIRED), then link phonebit::phonebit.
include(CMakeFindDependencyMacro)
find_dependency(Threads)
include("${CMAKE_CURRENT_LIST_DIR}/phonebitTargets.cmake")
