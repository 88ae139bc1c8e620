"""A line of `answers.jsonl`: the chosen answer of a prompt, and what it cost; what one should know of the answers."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rollwise.errors import ConfigError
from rollwise.inference.bestof.job import Job
from rollwise.inference.evaluation.bench import source_of
from rollwise.inference.head.fitted_on import fitted_among, overlap_words
from rollwise.inference.policies import CONFIDENT, LIVE_RULES, BestOfN, Candidate, Result, answer_key, choose
from rollwise.models.sampler import encode

logger = logging.getLogger(__name__)

_VOTES = (*LIVE_RULES[1:], CONFIDENT)

Line = dict[str, Any]
"""A prompt's line: id, prompt, answer (the chosen text), chosen (its index), value_end, k, complete, abandoned,
row_forwards, steps, prompt_tokens, rewards (of the chosen one, or empty), candidates if all are kept, and first_value
and first_solved (V(x), and whether the first candidate succeeded) where the setting is an evaluation's."""


def line_of(job: Job, result: Result, row: Mapping[str, Any], states: Sequence[float]) -> Line:
    """A prompt's line.

    Args:
        job: How the answer is chosen, and who scores it.
        result: The prompt's candidates.
        row: The prompt's row: `prompt`, and the columns that the reward needs.
        states: (R,) rewards of the signal's states; empty without one.

    Raises:
        ConfigError: no candidate is complete, which is a fault of the policy.
    """
    config, scorer = job.config, job.scorer
    chosen = choose(result, str(config.select), states=states, policy=job.policy, check=job.check)
    if chosen is None:
        raise ConfigError(f"policy {config.policy!r} gave up every candidate of prompt {result.id!r}; fix the policy")
    rewards = [] if scorer is None else scorer(row, [chosen.text], [chosen.token_ids])[0]
    line = {
        "id": result.id,
        "prompt": row["prompt"],
        "answer": chosen.text,
        "chosen": chosen.index,
        "value_end": None if np.isnan(chosen.value_end) else round(chosen.value_end, 6),
        "k": len(result.candidates),
        "complete": len(result.complete),
        "abandoned": sum(candidate.state == "abandoned" for candidate in result.candidates),
        "row_forwards": result.row_forwards,
        "steps": result.steps,
        "prompt_tokens": result.prompt_tokens,
        **({} if config.base_url is None else {"late_tokens": result.late_tokens}),
        "rewards": rewards,
    }
    if config.chosen is not None:
        line |= _first(job, result.candidates[0], chosen, rewards, row)
    if config.keep_texts == "all":
        line["candidates"] = [
            {
                "state": candidate.state,
                "text": candidate.text,
                "token_ids": candidate.token_ids,
                "values": [round(value, 6) for value in candidate.values.tolist()],
            }
            for candidate in result.candidates
        ]
    return line


def _first(job: Job, first: Candidate, chosen: Candidate, rewards: list[float | None], row: Mapping[str, Any]) -> Line:
    """V(x) by a head, and whether the first candidate succeeded: with others left out, their mean is the pass rate."""
    solved, scorer = None, job.scorer
    if scorer is not None and first.complete:
        own = rewards if first.index == chosen.index else scorer(row, [first.text], [first.token_ids])[0]
        solved = scorer.solved(own[0])
    known = job.head is not None and len(first.values) > 0  # what deepconf reads is no chance of success
    return {"first_value": float(first.values[0].round(6)) if known else None, "first_solved": solved}


def notes_before(job: Job, tokenizer: Any, facts: Mapping[str, Any]) -> list[str]:
    """Warn where the setting was chosen on something else; on how many of the prompts the head was fitted."""
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
            "stop": list(job.options.stop),
        }
        for said in config.chosen.differences(now):
            logger.warning("setting %r was chosen on something else: %s", config.chosen.name, said)
    if head is None:
        return []
    prompts = [encode(tokenizer, prompt) for prompt in job.prompts]
    return [overlap_words(fitted_among(head, prompts), len(prompts))]


def notes_after(job: Job, lines: list[Line]) -> list[str]:
    """Whether the policy acted, there were votes, and the prompts are as hard as those its setting was chosen on."""
    config, policy = job.config, job.policy
    notes = []
    mute = sum(answer_key(line["answer"]) is None for line in lines)  # no answer wins only where there is none
    if mute and config.select in _VOTES:
        notes.append(
            f"{mute:,} of {len(lines):,} prompts have no candidate with an answer in <answer> tags or \\boxed{{}}, so "
            f"select {config.select} had no votes to count there"
        )
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
