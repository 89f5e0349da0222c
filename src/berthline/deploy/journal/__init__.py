"""The journal: everything that was seen, decided and done, append-only, in SQLite."""
