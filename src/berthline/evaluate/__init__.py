"""Evaluation: metrics of one run, statistics over paired runs, comparisons of schedulers."""
