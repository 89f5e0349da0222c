"""The training loop: `trainer.py` runs an algorithm, validates its policy and keeps checkpoints."""
