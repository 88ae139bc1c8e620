"""tests/engines/test_skyrl.py over the engine itself."""

from engines.test_skyrl import *  # noqa: F403
