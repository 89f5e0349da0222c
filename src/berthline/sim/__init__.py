"""The two simulators: `reference` defines the semantics, `native` runs them fast."""
