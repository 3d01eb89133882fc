# weir_allocator: malloc of the programs that serve files. Much of what one of their threads allocates
# another frees (requests, what waits for a commit), which costs glibc's malloc a quarter of the time
# of a name; and it gives buffers of a MiB back to the kernel after each request, which zeroes their
# pages again for the next one. jemalloc does neither. Sanitizers bring their own.
add_library(weir_allocator INTERFACE)
if(NOT WEIR_SANITIZE)
  pkg_check_modules(JEMALLOC REQUIRED IMPORTED_TARGET jemalloc)
  # Before the C library, and also where a linker leaves out what a program does not name.
  target_link_libraries(weir_allocator INTERFACE
    -Wl,--push-state,--no-as-needed PkgConfig::JEMALLOC -Wl,--pop-state)
endif()
