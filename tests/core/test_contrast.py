"""Mean squared advantage of chosen prompts over that of prompts drawn at random."""

import json

import numpy as np
import pytest

import rollwise as rw
from rollwise.tickets import Contrast


def test_by_hand() -> None:
    """Eight groups of one solved in four, A^2 = 3/16, and eight at random of which half are mixed so: 3/32."""
    contrast = Contrast()
    squares = np.array([3 / 16] * 8 + [3 / 16, 0.0] * 4)
    contrast.note_squares(squares, np.arange(16) >= 8)
    assert contrast.ratio is None  # until the step ends
    contrast.end_step()
    assert contrast.ratio == pytest.approx((12 * 3 / 16 / 16) / (3 / 32)) == pytest.approx(1.5)
    assert contrast.scale == pytest.approx(1.5**-0.5)


def test_unknown_until_enough_are_known() -> None:
    contrast = Contrast()
    contrast.note_squares(np.full(7, 0.25), np.ones(7, dtype=bool))
    contrast.end_step()
    assert (contrast.ratio, contrast.scale, contrast.metrics()) == (None, 1.0, {})
    contrast.note_squares(np.full(8, 0.25), np.ones(8, dtype=bool))
    contrast.end_step()
    assert contrast.metrics() == {"contrast_ratio": pytest.approx(1.0)}


def test_old_groups_are_forgotten() -> None:
    contrast = Contrast()
    for square in (0.25, 0.05):
        for _ in range(40):
            contrast.note_squares(np.array([square] * 32), np.array([True, False] * 16))
            contrast.end_step()
    assert contrast.sums[0] / contrast.sums[1] == pytest.approx(0.05, abs=0.003)


def run(curriculum: rw.Curriculum, steps: int, rng: np.random.Generator) -> None:
    for _ in range(steps):
        tickets = curriculum.ask(16, n_rollouts=8)
        rates = [int(t.prompt_id[1:]) % 5 / 4 for t in tickets]
        curriculum.tell(
            [rw.Outcome(t.id, (rng.random(8) < p).astype(float)) for t, p in zip(tickets, rates, strict=True)]
        )


def pool() -> rw.PromptPool:
    return rw.PromptPool(ids=[f"p{i}" for i in range(200)])


def test_of_curricula() -> None:
    """Uniform sampling is its own measure; a method that prefers p (1 - p) has more, its own exploration aside."""
    uniform, replay = rw.Uniform(pool()), rw.PrioritizedReplay(pool(), exploration=0.3, explore_from="all")
    for curriculum in (uniform, replay):
        run(curriculum, 40, np.random.default_rng(0))
    assert uniform.metrics()["contrast_ratio"] == pytest.approx(1.0)
    assert replay.metrics()["contrast_ratio"] > 1.2


def test_saved_and_resumed() -> None:
    curriculum = rw.PrioritizedReplay(pool(), exploration=0.3)
    assert "contrast" not in curriculum.state_dict()["body"]
    run(curriculum, 20, np.random.default_rng(0))
    resumed = rw.PrioritizedReplay(pool(), exploration=0.3)
    state = json.loads(json.dumps(curriculum.state_dict()))
    resumed.load_state_dict(state)
    assert resumed.metrics() == curriculum.metrics()
    del state["body"]["contrast"]  # a state of before
    resumed.load_state_dict(state)
    assert resumed.contrast.ratio is None
