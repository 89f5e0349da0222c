"""Environments for reinforcement learning: many simulations that step together."""
