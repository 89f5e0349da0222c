"""Why a waiting job does not start at an instant: codes, their numbers, the order of the queue."""
