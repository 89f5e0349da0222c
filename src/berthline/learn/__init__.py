"""Learning: networks, algorithms, and what a training run leaves behind; the extra `train`."""
