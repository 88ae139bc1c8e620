"""The viability gate, and the length half of a head, by hand."""

import numpy as np
import pytest

from rollwise.inference.measures.length_error import length_errors, length_gate
from rollwise.inference.measures.viability import viability
from rollwise.runs.evaluation_file import viability_words


def test_value_against_random_by_hand() -> None:
    """Two prompts of two groups of 2 each; the fifth rollout of the first is in no group, the third has too few."""
    values = [0.9, 0.1, 0.2, 0.8, 0.99, 0.3, 0.4, 0.5, 0.6, 1.0]
    rewards = [1, 0, 1, 0, 1, 0, 1, 0, 0, 1]
    prompts = [0, 0, 0, 0, 0, 1, 1, 1, 1, 2]
    found = viability(values, rewards, prompts, 2)
    assert found is not None
    assert (found["value"], found["random"], found["prompts"]) == (0.5, 0.375, 2)  # (1 + 0) / 2, (1 + 0) / 2
    assert found["gain"] == pytest.approx(0.125)
    assert (found["low"], found["high"], found["verdict"]) == (0.0, 0.25, "failed")
    assert viability(values, rewards, prompts, 5) is None


def test_a_good_head_passes_and_a_blind_one_fails() -> None:
    rng = np.random.default_rng(0)
    rewards = (rng.random(40 * 8) < 0.5).astype(float)
    prompts = np.repeat(np.arange(40), 8)
    good, blind = viability(rewards, rewards, prompts, 8), viability(rng.random(320), rewards, prompts, 8)
    assert good is not None
    assert blind is not None
    assert (good["verdict"], blind["verdict"]) == ("passed", "failed")
    assert viability_words(good).startswith("Viability gate passed: value@8 1.000 against random@8")
    assert viability_words(blind).endswith("over 40 prompts: don't decode with this head.")
    assert "not known" in viability_words(None)


def test_the_error_of_expected_lengths_by_hand() -> None:
    """After one token 2, 3 and 5 are to come; the head says 2, 4, 2; the best constant, 3, is off by 1, 0 and 2."""
    tracks = [np.array([9.0, 2.0, 1.0]), np.array([9.0, 4.0, 1.0, 1.0]), np.array([9.0, 2.0, 1.0, 1.0, 1.0, 1.0])]
    (at,) = length_errors(tracks * 4, np.arange(12), [1])
    assert (at["alive"], at["blind"]) == (12, 1.0)
    assert at["error"] == pytest.approx(4 / 3)
    assert at["bias"] == pytest.approx(-2 / 3)
    assert at["skill"]["value"] == pytest.approx(-1 / 3)
    assert length_gate(at["skill"]) == "blind"
    (gone,) = length_errors(tracks, [0, 1, 2], [6])
    assert gone["alive"] == 0
    assert np.isnan(gone["error"])
    assert length_gate(gone["skill"]) == "unknown"


def test_a_head_that_knows_lengths_may_be_used() -> None:
    rng = np.random.default_rng(1)
    lengths = rng.integers(10, 40, size=60)
    tracks = [np.arange(n, 0, -1) + rng.normal(size=n) for n in lengths]
    (at,) = length_errors(tracks, np.repeat(np.arange(15), 4), [4])
    assert length_gate(at["skill"]) == "usable"
    assert at["correlation"] > 0.9
