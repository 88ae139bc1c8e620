"""Multi-turn function calling (BFCL)."""
