# The package works from where it is installed: installs a build, builds examples/cpp against it, runs that.
#
#   cmake -DBUILD=<folder> -DWORK=<folder> -DEXAMPLE=<examples/cpp> -DMODEL=<.pbit> -DGENERATOR=<name>
#         -DCOMPILER=<arguments of cmake> [-DEMULATOR=<program>] [-DREADELF=<program>] -P check_package.cmake
file(REMOVE_RECURSE ${WORK})
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE STATUS OUTPUT_VARIABLE TEXT ERROR_VARIABLE TEXT)
  if(STATUS)
    message(FATAL_ERROR "${ARGN}: ${STATUS}\n${TEXT}")
  endif()
  set(TEXT "${TEXT}" PARENT_SCOPE)
endfunction()

run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix --strip)
run(${CMAKE_COMMAND} -S ${EXAMPLE} -B ${WORK}/build -G ${GENERATOR} ${COMPILER} -DCMAKE_PREFIX_PATH=${WORK}/prefix
  -DCMAKE_FIND_ROOT_PATH_MODE_PACKAGE=BOTH -DCMAKE_BUILD_TYPE=Release)
run(${CMAKE_COMMAND} --build ${WORK}/build)
if(READELF)  # a program has the package's pages, whatever the linker's are
  run(${READELF} --wide --program-headers ${WORK}/build/classify)
  if(NOT TEXT MATCHES " LOAD " OR TEXT MATCHES " LOAD [^\n]* 0x[12]?[0-9a-f]?[0-9a-f]?[0-9a-f]\n")
    message(FATAL_ERROR "classify is aligned to less than 16 kB:\n${TEXT}")
  endif()
endif()
run(${EMULATOR} ${WORK}/build/classify ${MODEL})
if(NOT TEXT MATCHES " on (cpu|gpu):.*[0-9]\\.[0-9]+  ")
  message(FATAL_ERROR "classify printed no scores:\n${TEXT}")
endif()

run(${EMULATOR} ${WORK}/build/layers ${WORK}/layers.pbit)
run(${EMULATOR} ${WORK}/build/classify ${WORK}/layers.pbit)
