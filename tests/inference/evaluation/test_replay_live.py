"""A replay of a full run against the decoder proper, with a tiny model."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tiny import random_head, tiny

from rollwise.errors import ConfigError
from rollwise.inference import (
    BestOfN,
    EarlyStop,
    Policy,
    Prune,
    Sequential,
    Until,
    UntilChecked,
    Utility,
    UtilityOneByOne,
)
from rollwise.inference.decoding.decoder import AdaptiveDecoder, DecodingOptions
from rollwise.inference.evaluation.live import decode_on
from rollwise.inference.evaluation.replay import logged, replay
from rollwise.inference.evaluation.settings import EvaluationConfig
from rollwise.inference.evaluation.study import Evaluation
from rollwise.inference.policies.candidate_group import Result
from rollwise.inference.policies.confidence import DeepConfPolicy, TokenConfidence
from rollwise.inference.policies.until import AdaptiveConsistencyVote, EarlyStoppingVote

IDS = [f"p{i}" for i in range(5)]
PROMPTS = ["1,2:3=", "12,3:36=", "7,3,5:22=", "1=", "22,33,44,55:7="]
LIMIT, K = 24, 4
POLICIES = [
    Prune(warmup=3, interval=2, keep=1, threshold=0.55),
    EarlyStop(threshold=0.6, warmup=4),
    UtilityOneByOne(warmup=3, interval=2),
    Utility(beta=0.3, warmup=3, interval=2, normalise_by="typical"),
    Sequential(),
    Sequential(width=2, below=0.5, warmup=4, interval=2),
    Until(threshold=0.52),
    Until(threshold=0.52, width=2),
    UntilChecked(),
    EarlyStoppingVote(window=2),
    AdaptiveConsistencyVote(threshold=0.6),
    DeepConfPolicy(warmup=2, keep=50, window=3, interval=2, consensus=0.6),
]


def test_a_second_signal_is_read_along() -> None:
    """What is watched is what one would have gone by, and changes nothing."""
    model, tokenizer = tiny()
    options = DecodingOptions(max_new_tokens=LIMIT, slots=7, seed=3)
    confidence = TokenConfidence(k=5)

    def decode(signal: Any, **given: Any) -> dict[str, Result]:
        made = AdaptiveDecoder(model, tokenizer, signal=signal, options=options)
        return {result.id: result for result in made.decode(IDS, PROMPTS, BestOfN(), k=K, **given)}

    head = random_head(model, tokenizer)
    alone, by_it, both = decode(head), decode(confidence), decode(head, watch=confidence)
    for id_ in IDS:
        for one, other, watched in zip(*(run[id_].candidates for run in (alone, by_it, both)), strict=True):
            assert one.token_ids == watched.token_ids
            np.testing.assert_array_equal(one.values, watched.values)
            np.testing.assert_allclose(other.chances, watched.watched, atol=1e-9)  # differences of sums


def digits(text: str) -> str | None:
    """Votes of texts without any sense: whether the first sign is a digit; a text without a sign has none."""
    return str(text[0].isdigit()) if text else None


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_replay_is_what_the_decoder_does(policy: Policy) -> None:
    model, tokenizer = tiny()
    head: Any = TokenConfidence() if policy.name == "deepconf" else random_head(model, tokenizer)
    options = DecodingOptions(max_new_tokens=LIMIT, slots=len(IDS) * K, seed=3)  # a slot for each

    def decode(how: Policy) -> dict[str, Result]:
        made = AdaptiveDecoder(model, tokenizer, signal=head, options=options)
        return {result.id: result for result in made.decode(IDS, PROMPTS, how, k=K, answer=digits)}

    full, live = decode(BestOfN()), decode(policy)
    for id_ in IDS:
        mine = replay(logged(full[id_]), policy, limit=LIMIT, states=head.states, key=digits)
        theirs = live[id_]
        assert [(c.state, c.token_ids) for c in mine.candidates] == [(c.state, c.token_ids) for c in theirs.candidates]
        assert (mine.steps, mine.row_forwards) == (theirs.steps, theirs.row_forwards)
        for a, b in zip(mine.candidates, theirs.candidates, strict=True):
            np.testing.assert_allclose(a.value_end, b.value_end, atol=1e-5)


def test_a_model_without_slots_is_evaluated_with_what_it_can_decode(tmp_path: Path) -> None:
    """With a sliding window nothing begins late: the evaluation ended with an error at its live runs."""
    model, tokenizer = tiny("mistral")
    head = random_head(model, tokenizer)
    decoder = AdaptiveDecoder(model, tokenizer, signal=head, options=DecodingOptions(max_new_tokens=12, slots=9))
    with pytest.raises(
        ConfigError, match=r"'until' begins candidates late.* attends to a sliding window.*: none, prune"
    ):
        decoder.decode(IDS, PROMPTS, Until(), k=3)
    few: dict[str, Any] = {
        "thresholds": (0.5,), "taus": (0.8,), "betas": (0.02,), "sequential_betas": (0.05,), "untils": (0.5,),
        "mean_ks": (2,), "windows": (2,), "confidences": (0.8,), "resamples": 20, "live": "all",
    }  # fmt: skip
    bench: Any = SimpleNamespace(ids=IDS, rows=[{"prompt": prompt} for prompt in PROMPTS])
    evaluation = Evaluation(
        tmp_path,
        EvaluationConfig(limit=12, num_generations=3, **few),
        decode=decode_on(decoder, bench, 3),
        judge=lambda results: [[float(len(c.token_ids) % 2) for c in result.candidates] for result in results],
        states=head.states,
        late=decoder.refills,
    )
    found = evaluation.run()["policies"]
    assert [policy["name"] for policy in found] == [
        "none", "prune 0.5", "early-stop 0.8", "early-stop-finished 0.8", "utility 0.02", "utility-at-once 0.02",
        "utility-one-by-one 0.02", "adaptive-K 2", "blend 2/0.5", "majority",
    ]  # fmt: skip
    assert all(policy["live"] is not None for policy in found)
