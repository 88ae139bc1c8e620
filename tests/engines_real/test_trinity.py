"""tests/engines/test_trinity.py over the engine itself."""

from engines.test_trinity import *  # noqa: F403
