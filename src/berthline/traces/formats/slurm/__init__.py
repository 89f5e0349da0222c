"""Slurm accounting: `sacct` as text and as JSON, and dumps of its database.

`slurm_fields.py` parses the fields that all three share: job states, TRES and durations.
"""
