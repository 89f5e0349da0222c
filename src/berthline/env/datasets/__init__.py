"""Recorded episodes: written once, read by offline learners."""
