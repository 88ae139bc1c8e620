"""The heat map's rows, by hand."""

import pytest

from rollwise.evaluation.success_rates import rate_counts
from rollwise.runs.group_table import group_table


@pytest.mark.parametrize(
    ("size", "solved", "row"),
    [(4, 0, 0), (4, 1, 1), (4, 3, 3), (4, 4, 4), (64, 0, 0), (64, 1, 1), (64, 32, 2), (64, 63, 3), (64, 64, 4)],
)
def test_the_outer_rows_have_only_groups_without_contrast(size: int, solved: int, row: int) -> None:
    common = [{"step": 1, "rewards": [0, 1, 0, 1]}] * 2  # the commonest size gives five rows
    found = rate_counts(group_table(enumerate([*common, {"step": 2, "rewards": [1] * solved + [0] * (size - solved)}])))
    assert found is not None
    assert found.counts[1].tolist() == [float(i == row) for i in range(5)]


def test_groups_of_one_have_two_rows() -> None:
    rows = [{"step": 1, "rewards": [reward]} for reward in (0, 1, 1)] + [{"step": 1, "rewards": [0, 0, 1, 1]}]
    found = rate_counts(group_table(enumerate(rows)))
    assert found is not None
    assert found.counts.tolist() == [[1.0, 3.0]]
