"""Self-consistency over any OpenAI-compatible endpoint: the command `consistency`."""
