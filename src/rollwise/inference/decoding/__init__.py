"""Decodes candidates of many prompts in one batch, and rolls prompts out for a head."""
