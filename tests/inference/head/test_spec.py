"""The grid of reward states and length bins, by hand."""

import numpy as np
import pytest

from rollwise.errors import ConfigError
from rollwise.inference.head.spec import HeadSpec, edges_for, reward_states_of


def test_the_papers_sizes() -> None:
    assert HeadSpec().size == 14
    assert HeadSpec(rewards=(0, 0.1, 1)).size == 21


def test_flat_index_is_length_bin_plus_state_times_bins() -> None:
    """20 remaining tokens are in bin 1 of 7; a correct rollout has state 1 of (0, 1): 1 + 1 * 7 = 8."""
    assert HeadSpec().labels(20, 1.0) == 8
    assert HeadSpec(rewards=(0, 0.1, 1)).labels(20, 1.0) == 15


def test_a_rollouts_labels_count_down_from_its_length() -> None:
    """Three tokens: remaining 3, 2, 1; the first belongs to the prompt's last token."""
    spec = HeadSpec(edges=(0, 2, 3, 8))
    assert spec.rollout_labels(3, 0.0).tolist() == [2, 1, 0]


def test_joint_value_and_length_by_hand() -> None:
    """Logits log(1, 2, 3, 4) over two states and two bins: joint (.1, .2), (.3, .4).

    V = .7 * 1; E[length] = (.1 + .3) * 2 + (.2 + .4) * 10 = 6.8, with midpoints 2 and 10.
    """
    spec = HeadSpec(edges=(0, 4, 16))
    joint = spec.joint(np.log([1.0, 2.0, 3.0, 4.0]))
    np.testing.assert_allclose(joint, [[0.1, 0.2], [0.3, 0.4]])
    assert spec.value(joint) == pytest.approx(0.7)
    assert spec.expected_length(joint) == pytest.approx(6.8)
    assert HeadSpec(rewards=(0.5, 2), edges=(0, 4, 16)).value(joint) == pytest.approx(0.3 * 0.5 + 0.7 * 2)


@pytest.mark.parametrize("bad", [(0, np.inf), (-np.inf, 0), (0, np.nan), (1, 0), (1,)])
def test_reward_states_rise_and_are_finite(bad: tuple[float, ...]) -> None:
    with pytest.raises(ConfigError, match="rewards must"):
        HeadSpec(rewards=bad)


def test_edges_scale_with_the_task() -> None:
    assert edges_for(1024) == (0, 16, 32, 64, 128, 256, 512, 1024)
    assert edges_for(1) == (0, 1)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rewards": (1.0,)}, "rewards"),
        ({"rewards": (1.0, 0.0)}, "rising"),
        ({"edges": (0,)}, "edges"),
        ({"edges": (1, 2)}, "edges"),
        ({"edges": (0, 5, 5)}, "edges"),
    ],
)
def test_bad_grids_are_refused(options: dict, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        HeadSpec(**options)


def test_logits_of_another_size_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"\(..., 14\)"):
        HeadSpec().joint(np.zeros(13))


def test_rollouts_that_agree_can_teach_nothing() -> None:
    with pytest.raises(ConfigError, match=r"all 3 rollouts have the reward 1.0"):
        reward_states_of([1, 1, 1])
    with pytest.raises(ConfigError, match="too many"):
        reward_states_of(list(range(20)))
