# Warnings that every target of ours is built with; all of them are errors, unless somebody builds with other compilers
# or flags than we do.
option(WEIR_WARNINGS_ARE_ERRORS "Stop at warnings" ON)
add_library(weir_warnings INTERFACE)
target_compile_options(weir_warnings INTERFACE -Wall -Wextra -Wpedantic -Wnon-virtual-dtor
                                               -Woverloaded-virtual -Wno-missing-field-initializers)
if(WEIR_WARNINGS_ARE_ERRORS)
  target_compile_options(weir_warnings INTERFACE -Werror)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(weir_warnings INTERFACE -Wshadow=local)
else()
  target_compile_options(weir_warnings INTERFACE -Wno-missing-braces)
endif()
if(CMAKE_UNITY_BUILD)
  # Every .cc looks like a header there.
  target_compile_options(weir_warnings INTERFACE -Wno-subobject-linkage)
endif()
