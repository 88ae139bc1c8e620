"""tests/engines/test_torch_loader.py with torchdata, which an environment of engines has."""

from engines.test_torch_loader import *  # noqa: F403
