// Logging of the MDS. Threads: any.
#pragma once

#include <spdlog/spdlog.h>

#define WEIR_LOG_DEBUG(...) ::spdlog::debug(__VA_ARGS__)
#define WEIR_LOG_INFO(...) ::spdlog::info(__VA_ARGS__)
#define WEIR_LOG_WARN(...) ::spdlog::warn(__VA_ARGS__)
#define WEIR_LOG_ERROR(...) ::spdlog::error(__VA_ARGS__)
