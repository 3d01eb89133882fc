#include "common/base/freed_memory.h"

#include <malloc.h>

namespace weir {

void KeepFreedMemory() {
  (void)mallopt(M_MMAP_THRESHOLD, 32 << 20);  // the largest that glibc takes
  (void)mallopt(M_TRIM_THRESHOLD, 64 << 20);
}

}  // namespace weir
