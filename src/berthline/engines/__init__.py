"""Engines: who carries the messages between a plan and those who work on it."""
