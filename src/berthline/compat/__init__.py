"""Adapters to libraries whose interface for many environments is not Gymnasium's."""
