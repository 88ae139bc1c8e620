"""How many rollouts a ticket may ask for."""

import pytest

import rollwise as rw
from rollwise.tickets.ticket import rollouts_to_make


def ticket(n_rollouts: int | None) -> rw.Ticket:
    return rw.Ticket("t7", "a", "1+1", "continue", step=1, n_rollouts=n_rollouts)


@pytest.mark.parametrize(
    ("wanted", "kept", "screens", "made"),
    [
        *((None, None, False, 8), (8, None, False, 8), (4, None, False, 4), (12, None, False, 12)),
        *((None, 3, True, 8), (8, 3, True, 8)),  # the screening is given up
        (5, 3, True, 5),
        (5, None, True, 8),  # the screening was lost
        (6, 3, True, 8),  # of 3 screened rollouts one had no reward
    ],
)
def test_sizes_that_are_made(wanted: int | None, kept: int | None, screens: bool, made: int) -> None:
    assert rollouts_to_make(ticket(wanted), 8, kept=kept, screens=screens) == made


@pytest.mark.parametrize(
    ("wanted", "kept", "screens"),
    [
        *((0, None, False), (-1, None, False)),
        *((4, 3, True), (12, None, True), (0, None, True), (0, 8, True), (-1, 9, True)),
    ],
)
def test_other_sizes_are_refused_by_name(wanted: int, kept: int | None, screens: bool) -> None:
    with pytest.raises(rw.ConfigError, match=rf"'t7' asks for n_rollouts={wanted}.*, of groups of 8: give at least 1"):
        rollouts_to_make(ticket(wanted), 8, kept=kept, screens=screens)
