"""tests/engines/test_tinker.py over the engine itself."""

from engines.test_tinker import *  # noqa: F403
