"""Runs that begin in the middle: states taken from logs, continued, and decided on."""
