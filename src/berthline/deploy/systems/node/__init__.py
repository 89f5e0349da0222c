"""One node as a system: real processes on its GPUs, or on declared slots."""
