# phonebit_doctest: doctest (https://github.com/doctest/doctest) and a main function that runs all test cases. The
# header is this system's (Debian: doctest-dev), else a release's. It is copied, so that a cross compiler sees it
# without the rest of /usr/include.
find_path(PHONEBIT_DOCTEST doctest/doctest.h NO_CMAKE_FIND_ROOT_PATH DOC "Folder with doctest/doctest.h")
if(NOT PHONEBIT_DOCTEST)
  if(POLICY CMP0135)
    cmake_policy(SET CMP0135 NEW)
  endif()
  message(STATUS "There is no doctest here (Debian: doctest-dev); downloading it")
  include(FetchContent)
  FetchContent_Declare(doctest
    URL https://github.com/doctest/doctest/archive/refs/tags/v2.4.11.tar.gz
    URL_HASH SHA256=632ed2c05a7f53fa961381497bf8069093f0d6628c5f26286161fbd32a560186
    SOURCE_SUBDIR doctest)  # without a CMakeLists.txt: of the project only the header is wanted
  FetchContent_MakeAvailable(doctest)
  set(PHONEBIT_DOCTEST ${doctest_SOURCE_DIR})
endif()
set(DOCTEST_COPY ${CMAKE_CURRENT_BINARY_DIR}/doctest)
configure_file(${PHONEBIT_DOCTEST}/doctest/doctest.h ${DOCTEST_COPY}/doctest/doctest.h COPYONLY)

# Compiling tests takes longer than running them, but for those that compute what kernels must give: they ask for more.
set(PHONEBIT_TESTS_OPTIONS -O0)

add_library(phonebit_doctest OBJECT ${CMAKE_CURRENT_LIST_DIR}/main.cpp)
target_link_libraries(phonebit_doctest PRIVATE phonebit_options)
target_compile_options(phonebit_doctest PRIVATE ${PHONEBIT_TESTS_OPTIONS})
target_include_directories(phonebit_doctest SYSTEM PUBLIC ${DOCTEST_COPY})
target_include_directories(phonebit_doctest INTERFACE ${CMAKE_CURRENT_LIST_DIR})
target_compile_definitions(phonebit_doctest INTERFACE PHONEBIT_SOURCE_DIR="${PROJECT_SOURCE_DIR}")

# phonebit_tests(PROGRAM FILES <name>... LIBRARIES <target>...): a program of tests/<...>/test_<name>.cpp, and a test
# <name> for each file, which runs the test cases of that file in a process of its own.
function(phonebit_tests PROGRAM)
  cmake_parse_arguments(PARSE_ARGV 1 OF "" "" "FILES;LIBRARIES")
  add_executable(${PROGRAM})
  target_link_libraries(${PROGRAM} PRIVATE phonebit_doctest ${OF_LIBRARIES})
  target_compile_options(${PROGRAM} PRIVATE ${PHONEBIT_TESTS_OPTIONS})
  foreach(NAME IN LISTS OF_FILES)
    target_sources(${PROGRAM} PRIVATE test_${NAME}.cpp)
    phonebit_add_test(${NAME} ${PROGRAM} test_${NAME}.cpp)
  endforeach()
endfunction()

function(phonebit_add_test NAME PROGRAM FILE)
  add_test(NAME ${NAME} COMMAND ${PROGRAM} --source-file=*/${FILE} --abort-after=20 ${ARGN})
  # A file without test cases is a mistake, and a test that needs OpenCL does not pass where there is none.
  set_tests_properties(${NAME} PROPERTIES FAIL_REGULAR_EXPRESSION "test cases: +0 " SKIP_REGULAR_EXPRESSION "skipped: no OpenCL device")
endfunction()
