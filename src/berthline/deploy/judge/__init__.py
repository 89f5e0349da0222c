"""The verdict on a journal: ours against the native scheduler, over the same period."""
