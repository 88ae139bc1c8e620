"""Policies: the embedded tiny one that needs no download, and any causal language model of transformers.

Importing this package is cheap; torch and transformers are imported when one of its functions is called.
"""

from rollwise.models.embedded import EmbeddedConfig, embedded_policy
from rollwise.models.loading import load_policy
from rollwise.models.sources import EMBEDDED, task_for
from rollwise.models.tokenizer import character_tokenizer

__all__ = ["EMBEDDED", "EmbeddedConfig", "character_tokenizer", "embedded_policy", "load_policy", "task_for"]
