"""What to do with candidates: policies, selection, votes, confidence. Pure functions, numpy alone."""
