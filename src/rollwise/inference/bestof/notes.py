"""What one should know of the answers, in sentences."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from rollwise.inference.bestof.job import Job
from rollwise.inference.bestof.lines import Line
from rollwise.inference.evaluation.bench import source_of
from rollwise.inference.head.fitted_on import fitted_among, overlap_words
from rollwise.inference.policies import BestOfN
from rollwise.models.sampler import encode

logger = logging.getLogger(__name__)


def notes_before(job: Job, tokenizer: Any, facts: Mapping[str, Any]) -> list[str]:
    """Warn where the setting was chosen on something else; on how many of the prompts the head was fitted.

    Args:
        job: What is to be answered.
        tokenizer: Makes prompts token ids.
        facts: Of the model (`made_by`).
    """
    config, data, head = job.config, job.data, job.head
    if config.chosen is not None:
        now = {
            "weights_digest": facts["weights_digest"],
            "head": None if head is None else head.digest,
            "data_hash": data.fingerprint(),
            "source": source_of(config),
            "limit": job.options.max_new_tokens,
            "temperature": config.temperature,
            "top_p": config.top_p,
        }
        for said in config.chosen.differences(now):
            logger.warning("setting %r was chosen on something else: %s", config.chosen.name, said)
    if head is None:
        return []
    prompts = [encode(tokenizer, prompt) for prompt in job.prompts]
    return [overlap_words(fitted_among(head, prompts), len(prompts))]


def notes_after(job: Job, lines: list[Line]) -> list[str]:
    """Whether the policy ever acted, and whether the prompts are as hard as those that its setting was chosen on."""
    config, policy = job.config, job.policy
    notes = []
    if not isinstance(policy, BestOfN) and all(line["complete"] == line["k"] for line in lines):
        notes.append(
            f"policy {policy.name} never acted: all candidates of all {len(lines):,} prompts were carried to the end, "
            "as by policy none"
        )
    known = [line for line in lines if "first_value" in line]
    if config.chosen is not None and known:
        values = [float("nan") if line["first_value"] is None else line["first_value"] for line in known]
        said = config.chosen.easier_or_harder([line["first_solved"] for line in known], values)
        notes += [said] if said else []
    return notes
