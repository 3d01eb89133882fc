# Makes a C++ source of the page: cmake -DPAGE=index.html -DOUT=web_page.cc -P embed.cmake
file(READ ${PAGE} page)
string(FIND "${page}" ")page\"" clash)
if(NOT clash EQUAL -1)
  message(FATAL_ERROR "${PAGE} holds the end mark of the string literal")
endif()
file(WRITE ${OUT} "#include \"common/monitor/web_page.h\"\n\nnamespace weir::monitor {\n")
file(APPEND ${OUT} "const std::string_view kWebPage = R\"page(${page})page\";\n}\n")
