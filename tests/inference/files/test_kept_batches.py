"""A pass over rollouts that is killed goes on where it stopped, with the same numbers."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny import random_head

from rollwise.inference.files.kept_batches import KeptBatches, pass_facts, remove_kept
from rollwise.inference.files.rollout_set import RolloutSet
from rollwise.inference.fitting.verdict_fitting import window_means
from rollwise.inference.head.hidden import gather_states
from rollwise.inference.head.scoring import score_rollouts
from rollwise.models import load_policy
from rollwise.models.identity import weights_digest

torch = pytest.importorskip("torch")
BATCH = 64
"""Tokens of a forward pass: a few rollouts of 12."""


@pytest.fixture
def policy(toy: Path) -> Any:
    return load_policy(toy / "one")[0]


class KilledError(Exception):
    """In place of a kill."""


def killed_after(rollouts: int) -> Callable[[int, int], None]:
    def progress(done: int, total: int) -> None:
        if done >= rollouts:
            raise KilledError

    return progress


def test_a_killed_pass_reads_the_rest_alone(policy: Any, rolled: Path, tmp_path: Path) -> None:
    rollouts = RolloutSet.read(rolled)
    facts = pass_facts(policy, rollouts, seed=3)
    options: dict[str, Any] = {"max_positions": 200, "seed": 3, "batch_tokens": BATCH, "also": window_means}
    whole = gather_states(policy, rollouts, **options)
    with pytest.raises(KilledError):
        gather_states(
            policy, rollouts, **options, kept=KeptBatches(tmp_path / "part", facts), progress=killed_after(60)
        )

    read: list[int] = []
    policy.register_forward_pre_hook(
        lambda module, given, named: read.append(len(named["input_ids"])), with_kwargs=True
    )
    again = gather_states(policy, rollouts, **options, kept=KeptBatches(tmp_path / "part", facts))
    assert 0 < sum(read) <= len(rollouts) - 60
    assert torch.equal(again.states, whole.states)
    assert np.array_equal(again.remaining, whole.remaining)
    assert all(torch.equal(a, b) for a, b in zip(again.also, whole.also, strict=True))
    assert len(again.also) == len(rollouts)


def test_a_folder_that_a_kill_left_without_facts_is_no_other_pass(tmp_path: Path) -> None:
    (tmp_path / "part").mkdir()  # killed, or the disk was full, before the facts were written
    KeptBatches(tmp_path / "part", {"seed": 1}).put(0, {0: {"x": np.zeros(2)}})
    assert KeptBatches(tmp_path / "part", {"seed": 1}).get(0) is not None
    assert KeptBatches(tmp_path / "part", {"seed": 2}).get(0) is None


def test_scores_are_kept_too(policy: Any, toy: Path, rolled: Path, tmp_path: Path) -> None:
    rollouts = RolloutSet.read(rolled)
    model, tokenizer = load_policy(toy / "one")
    head = random_head(model, tokenizer)
    whole = list(score_rollouts(model, head, rollouts, batch_tokens=BATCH))
    part = tmp_path / "part"
    with pytest.raises(KilledError):
        list(score_rollouts(model, head, rollouts, batch_tokens=BATCH, kept=part, progress=killed_after(60)))
    first = sorted(part.glob("batch-*.npz"))[0]
    first.write_bytes(first.read_bytes()[:100])  # torn: as good as none
    again = list(score_rollouts(model, head, rollouts, batch_tokens=BATCH, kept=part))
    model.forward = None  # all is kept now: nobody reads
    third = list(score_rollouts(model, head, rollouts, batch_tokens=BATCH, kept=part))
    for others in (again, third):
        for one, other in zip(whole, others, strict=True):
            assert (one.index, one.verdict) == (other.index, other.verdict)
            for name in ("chances", "values", "remaining", "entropy", "at_prompt"):
                assert np.array_equal(getattr(one, name), getattr(other, name))


def test_another_pass_begins_anew(tmp_path: Path) -> None:
    kept = KeptBatches(tmp_path / "part", {"head": "a"})
    assert kept.get(0) is None
    assert not (tmp_path / "part").exists()
    kept.put(0, {7: {"x": np.arange(3)}, 9: {"x": np.zeros((2, 0)), "y": np.array(1.5)}})
    same = KeptBatches(tmp_path / "part", {"head": "a"}).get(0)
    assert same is not None
    assert list(same) == [7, 9]
    assert same[7]["x"].tolist() == [0, 1, 2]
    assert same[9]["x"].shape == (2, 0)
    assert float(same[9]["y"]) == 1.5
    assert KeptBatches(tmp_path / "part", {"head": "b"}).get(0) is None


def test_a_folder_of_the_user_s_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    KeptBatches(tmp_path, {"head": "a"}).clear()
    remove_kept(tmp_path)
    assert (tmp_path / "mine.txt").read_text() == "mine"


def test_other_weights_are_another_model(policy: Any) -> None:
    before = weights_digest(policy)
    assert weights_digest(policy) == before
    with torch.no_grad():
        policy.model.layers[0].self_attn.q_proj.weight.mul_(1.001)
    assert weights_digest(policy) != before
