"""LSF accounting: `lsb.acct` itself, and CSV files made from it."""
