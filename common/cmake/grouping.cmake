# Several sources compiled as one: most of their time goes into the headers that they share. Only
# those of which none says a name that another keeps for itself (tools/lib/packing.py), so that each
# means what it means alone. After an edit that ends in "redefinition of": run cmake again.

# Makes groups of at most SIZE of the absolute paths that follow.
function(weir_compile_as_one group size)
  execute_process(
    COMMAND ${CMAKE_SOURCE_DIR}/tools/lib/packing.py ${size} ${ARGN}
    OUTPUT_VARIABLE groups COMMAND_ERROR_IS_FATAL ANY)
  string(REPLACE ";" "," groups "${groups}")
  string(REGEX MATCHALL "[^\n]+" groups "${groups}")
  set(number 0)
  foreach(members IN LISTS groups)
    string(REPLACE "," ";" members "${members}")
    set_source_files_properties(${members} PROPERTIES UNITY_GROUP ${group}_${number})
    math(EXPR number "${number} + 1")
  endforeach()
endfunction()

# Of a library, the sources that no header bears the name of. One that has its header is compiled
# alone, which shows that the header needs no other before it (tools/lib/lint.py headers).
function(weir_group_parts target)
  if(CMAKE_UNITY_BUILD)
    return()  # all of it is
  endif()
  get_target_property(sources ${target} SOURCES)
  set(parts)
  foreach(source IN LISTS sources)
    cmake_path(ABSOLUTE_PATH source)
    cmake_path(REPLACE_EXTENSION source h OUTPUT_VARIABLE header)
    if(NOT EXISTS ${header} AND source MATCHES "\\.cc$" AND NOT source MATCHES "^${CMAKE_BINARY_DIR}/")
      list(APPEND parts ${source})
    endif()
  endforeach()
  weir_compile_as_one(${target} 8 ${parts})
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()
