"""tests/engines/test_prime_rl.py over the engine itself."""

from engines.test_prime_rl import *  # noqa: F403
