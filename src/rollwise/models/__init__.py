"""Policies: the embedded tiny one that needs no download, and any causal language model of transformers; value models.

Importing this package is cheap; torch and transformers are imported when one of its functions is called.
"""

from rollwise.models.embedded import embedded_policy
from rollwise.models.features import add_features, prompt_features
from rollwise.models.judging import JudgingConfig, judging_policy, judgment_examples
from rollwise.models.loading import load_policy
from rollwise.models.sources import EMBEDDED, JUDGING, is_embedded, made_here, policy_source, task_for
from rollwise.models.tokenizer import character_tokenizer
from rollwise.models.value_model import ValueModelJudge
from rollwise.models.warm_start import EmbeddedConfig

__all__ = [
    "EMBEDDED",
    "JUDGING",
    "EmbeddedConfig",
    "JudgingConfig",
    "ValueModelJudge",
    "add_features",
    "character_tokenizer",
    "embedded_policy",
    "is_embedded",
    "judging_policy",
    "judgment_examples",
    "load_policy",
    "made_here",
    "policy_source",
    "prompt_features",
    "task_for",
]
