# The shared library shows what the golden list says, and nothing else.
#
#   cmake -DNM=<nm> -DLIBRARY=<libphonebit.so> -DGOLDEN=<list> -P check_exported_symbols.cmake
execute_process(COMMAND ${NM} -D --defined-only ${LIBRARY} OUTPUT_VARIABLE LINES COMMAND_ERROR_IS_FATAL ANY)
string(REGEX REPLACE "[0-9a-f]+ [A-Za-z] ([^\n]+)" "\\1" SYMBOLS "${LINES}")
string(REGEX REPLACE "\n$" "" SYMBOLS "${SYMBOLS}")
string(REPLACE "\n" ";" SYMBOLS "${SYMBOLS}")
list(SORT SYMBOLS)
file(STRINGS ${GOLDEN} EXPECTED)
if(NOT SYMBOLS STREQUAL EXPECTED)
  set(EXTRA ${SYMBOLS})
  list(REMOVE_ITEM EXTRA ${EXPECTED})
  set(MISSING ${EXPECTED})
  list(REMOVE_ITEM MISSING ${SYMBOLS})
  message(FATAL_ERROR "${LIBRARY} shows other symbols than ${GOLDEN}; more: '${EXTRA}'; missing: '${MISSING}'. "
    "Names may be added to the list, in order, together with their declaration; none may ever leave it.")
endif()
