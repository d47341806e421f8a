"""Is a claim true? Verdicts with uncertainty: odds, the unknown that decides them, and what would have to be true."""
