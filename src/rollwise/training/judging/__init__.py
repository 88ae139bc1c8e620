"""METIS's judge loss, and the policy's judgments."""
