// Large pages of memory, if the system has them.
//
// A processor caches the addresses of about two thousand pages. A few hundred environments in turn
// use more pages of 4 KiB than that; then address lookups take as long as the steps.
#pragma once

#include <vector>

namespace berthline {

// Moves the memory around these addresses into large pages, if the system can. No other effect.
void use_large_pages(std::vector<const void*> addresses);

}  // namespace berthline
