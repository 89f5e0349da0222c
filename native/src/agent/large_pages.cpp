#include "agent/large_pages.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace berthline {

void use_large_pages(std::vector<const void*> addresses) {
#ifdef __linux__
  constexpr uintptr_t kLargePage = uintptr_t{2} << 20;
  constexpr int kCollapse = 25;  // MADV_COLLAPSE, since Linux 6.1; older systems refuse
  uintptr_t last = 0;
  std::sort(addresses.begin(), addresses.end());
  for (const void* address : addresses) {
    const uintptr_t page = reinterpret_cast<uintptr_t>(address) / kLargePage * kLargePage;
    // A page that is only partly ours is refused and stays as it is.
    if (page != last) madvise(reinterpret_cast<void*>(page), kLargePage, kCollapse);
    last = page;
  }
#else
  (void)addresses;
#endif
}

}  // namespace berthline
