"""What runs where decisions are made: no torch, and nothing of learning."""
