// Loops that are also compiled for wider vectors; the loader picks the version for the machine.
// Contraction is off (CMakeLists.txt), so all versions give the same bits.
#pragma once

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define BERTHLINE_CLONES __attribute__((target_clones("default", "avx2", "avx512f")))
#else
#define BERTHLINE_CLONES
#endif

// Functions that clones call must be inlined; otherwise they would not be cloned.
#if defined(__GNUC__)
#define BERTHLINE_INLINE [[gnu::always_inline]] inline
#else
#define BERTHLINE_INLINE inline
#endif
