# WEIR_SANITIZE=address|thread|undefined instruments everything; set by the presets of those names.
set(WEIR_SANITIZE "" CACHE STRING "address, thread or undefined")
if(WEIR_SANITIZE)
  add_compile_options(-fsanitize=${WEIR_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all
                      -Wno-maybe-uninitialized)  # g++ 12 sees ghosts in std::optional when instrumenting
  add_link_options(-fsanitize=${WEIR_SANITIZE})
  if(WEIR_SANITIZE MATCHES "address,undefined")
    # A third of the time to compile for what the address sanitizer sees anyway, or only the preset
    # ubsan looks for.
    add_compile_options(-fno-sanitize=null,alignment,object-size,vptr)
  endif()
endif()
