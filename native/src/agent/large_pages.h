// Large pages of memory, where the system has them.
//
// A processor knows where some two thousand pages are. A few hundred environments that take turns
// use more pages of 4 KiB than that, and then looking pages up takes as long as stepping.
#pragma once

#include <vector>

namespace berthline {

// Puts the memory around these addresses into large pages, if the system can; nothing else changes.
void use_large_pages(std::vector<const void*> addresses);

}  // namespace berthline
