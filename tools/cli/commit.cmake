# Writes OUTPUT, a header that names the commit, or the one of SOURCE; leaves it alone while that stays the same.
cmake_policy(VERSION 3.25)
if(NOT commit)
  execute_process(COMMAND git describe --always --exclude=* --abbrev=12 --dirty=+changes
    WORKING_DIRECTORY ${SOURCE} OUTPUT_VARIABLE commit ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
endif()
if(NOT commit)
  set(commit "unknown")
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "#define WEIR_VERSION \"@VERSION@\"\n#define WEIR_COMMIT \"@commit@\"\n" @ONLY)
