"""The runner: a process of its own that starts, watches and stops jobs. Standard library only."""
