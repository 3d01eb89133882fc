// Numbers of sessions: the three highest bits say which of its client's connections one is of.
//
// A client that sends on several threads has a connection to a server for each, and each connection
// counts its requests by itself: what a server remembers so that nothing is applied twice goes by
// the whole number. Who holds files, locks and leases, is fenced, or has requests under way is the
// session, without these bits.
#pragma once

#include <cstdint>

namespace weir::net {

inline constexpr uint32_t kConnectionBits = 3;
inline constexpr uint32_t kMostConnections = 1U << kConnectionBits;  // of a session to a server
inline constexpr uint32_t kConnectionShift = 64 - kConnectionBits;

constexpr uint64_t SessionOf(uint64_t number) {
  return number & ((uint64_t{1} << kConnectionShift) - 1);
}

// Another number of the same session for each `connection`; 0: `number` itself.
// Requires: connection < kMostConnections.
constexpr uint64_t OnConnection(uint64_t number, uint32_t connection) {
  return number ^ uint64_t { connection } << kConnectionShift;
}

}  // namespace weir::net
