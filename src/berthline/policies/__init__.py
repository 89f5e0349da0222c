"""Scheduling policies: the vocabulary, formulas, and the registries of rules for each seat."""
