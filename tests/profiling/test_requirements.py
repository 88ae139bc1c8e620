"""What each method would need, found by binding it."""

import sys

import numpy as np
import pytest

from rollwise.curricula import CURRICULA
from rollwise.pool import PromptPool
from rollwise.profiling.requirements import Requirement, requirements

N = 16
IDS = [f"p{i}" for i in range(N)]
RATES = np.linspace(0.0, 1.0, N)


def found(
    columns: dict[str, object], added: dict[str, object], *, steps: int = 2, group_size: int = 8
) -> dict[str, Requirement]:
    pool = PromptPool(ids=IDS, columns=columns)
    lines = requirements(pool, added, RATES, group_size=group_size, prompts_per_step=2, steps=steps, seed=0)
    return {line.method: line for line in lines}


def test_every_method_has_a_line() -> None:
    bare = found({}, {})
    assert set(bare) == set(CURRICULA) - {"oracle"}
    lacking = {name for name, line in bare.items() if line.verdict == "lacks a column"}
    assert lacking == {
        "actor-curator",
        "adarft",
        "dots",
        "dump",
        "embedding-judge",
        "frontier",
        "gaussian-target",
        "gps",
        "nested",
        "ordered",
        "pac",
        "sec",
    }
    assert bare["frontier"].detail.startswith("needs embedding: add a vector")
    assert bare["sec"].detail.startswith("needs category: add it")
    assert bare["uniform"].detail == ""
    assert bare["metis"].detail == "asks the policy, which must be able to write judgments"
    assert bare["bots"].detail == "would also use reference_pass_rates"
    assert bare["pcl"].verdict == "usable"  # its value model begins with the policy, which a trainer brings
    assert bare["recommended"].detail == "would also use category, reference_pass_rates, difficulty, embedding"


def test_methods_that_are_only_tried_warn_of_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """SEC, DUMP and PAC would say that all prompts are in one group."""
    assert found({"category": np.array(["sums"] * N)}, {})["sec"].verdict == "usable"
    assert caplog.text == ""


def test_a_screening_that_leaves_nothing_of_a_group_does_not_fit() -> None:
    """A trainer refuses it; pilot-commit's 8 pilots by default of groups of 8 by default too."""
    line = found({}, {})["pilot-commit"]
    assert (line.verdict, line.probe_rollouts) == ("does not fit", 0)
    assert line.detail == (
        "8 screening rollouts leave none of a group of 8 to be made: lower screen_rollouts, or take larger groups"
    )
    assert found({}, {}, group_size=16)["pilot-commit"].verdict == "usable"


def test_a_method_whose_extra_is_missing_has_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    line = found({}, {})["pcl"]
    assert line.verdict == "lacks an extra"
    assert "embedding-judge" in line.detail


def test_columns_of_the_data_and_of_the_profile() -> None:
    added = {"difficulty": 1.0 - RATES, "reference_pass_rates": np.stack([RATES / 2, RATES], axis=1)}
    lines = found({"category": ["a", "b"] * 8, "embedding": np.eye(N)}, added)
    assert {line.verdict for name, line in lines.items() if name != "pilot-commit"} == {
        "usable", "usable with this profile",
    }  # fmt: skip
    with_profile = {name for name, line in lines.items() if line.verdict == "usable with this profile"}
    assert with_profile == {"adarft", "gaussian-target", "ordered"}
    assert lines["ordered"].detail == "needs difficulty, which its table has"
    assert lines["bots"].detail == "would also use reference_pass_rates (this profile's table has it)"


def test_probes_are_counted() -> None:
    """16 prompts, 2 steps of 2 in groups of 8: 32 rollouts are trained on.

    SFL measures all 16 prompts once: 128, 128 / 160 of all. LILO at each step 4 * 2 of them: 128, too. ADCL
    all 16 with 4 each, and its second chunk of 2 again: 72 of 104, whatever difficulties the pool has.
    """
    bare = found({}, {})
    assert (bare["sfl"].probe_rollouts, bare["sfl"].share) == (128, 0.8)
    assert (bare["lilo"].probe_rollouts, bare["lilo"].share) == (128, 0.8)
    assert (bare["adcl"].probe_rollouts, bare["adcl"].share) == (72, 72 / 104)
    assert found({}, {"difficulty": 1.0 - RATES})["adcl"].probe_rollouts == 72
    assert bare["speed"].probe_rollouts > 0
    assert bare["bots"].probe_rollouts == 0
