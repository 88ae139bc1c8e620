"""A ticket: one prompt to roll out, and to tell the outcome of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from rollwise.errors import ConfigError

Purpose = Literal["train", "measure", "screen", "oracle"]


@dataclass(frozen=True, slots=True)
class Ticket:
    """One prompt chosen by `ask`.

    Attributes:
        id: what an `Outcome` names. Unique within the curriculum that issued it.
        prompt_id: the prompt's durable id.
        prompt: the prompt itself (text or chat messages).
        lane: why it was chosen: `priority`, `explore`, `retest-solved`, `retest-unsolved`, `uniform`, ...
        step: the step it was asked for.
        n_rollouts: how many rollouts to make; None leaves that to the caller.
        predicted: the expected mean score in [0, 1] believed at `ask`; None without a belief.
        propensity: the probability with which the draw picked it, given the picks before it in the same `ask`; None
            where the draw is not random.
        purpose: "train": train on its rollouts; "measure": they are only looked at; "screen": they are looked at first,
            and if the curriculum asks for the prompt again, trained on together with those of that ticket; "oracle":
            they are only looked at, and not charged to the run: for measuring what could be had.
        predicted_variance: the variance of the scores, in [0, 1/4], that a judge predicted; None without one.
    """

    id: str
    prompt_id: str
    prompt: Any
    lane: str
    step: int
    n_rollouts: int | None = None
    predicted: float | None = None
    propensity: float | None = None
    purpose: Purpose = "train"
    predicted_variance: float | None = None


def rollouts_to_make(ticket: Ticket, group_size: int, *, kept: int | None, screens: bool) -> int:
    """How many rollouts to make of a "train" ticket, so that its group has `group_size`; other sizes are refused.

    A ticket for fewer than the group goes on with the kept rollouts of its screening. Where those were lost (resumed
    without them), or some of them had no reward, the whole group is made. What a lost screening held is not known, so
    a curriculum that screens may then ask for any smaller number; of one that does not, it is refused.

    Args:
        ticket: what the curriculum asked for.
        group_size: G, the rollouts of every group that is trained on.
        kept: rollouts of the prompt's screening that are still there; None without any.
        screens: whether the curriculum's probes are screenings, see `Ticket.purpose`.

    Raises:
        ConfigError: the ticket's own `n_rollouts` can't be trained on with this group size.

    >>> ticket = Ticket("t0", "a", "1+1", "continue", step=1, n_rollouts=5)
    >>> [rollouts_to_make(ticket, 8, kept=kept, screens=True) for kept in (3, None)]
    [5, 8]
    """
    wanted = group_size if ticket.n_rollouts is None else ticket.n_rollouts
    if wanted == group_size or (kept is not None and wanted > 0 and wanted + kept == group_size):
        return wanted
    if screens and 0 < wanted < group_size and (kept is None or wanted + kept > group_size):
        return group_size
    made = f", of which {kept} were screened" if kept is not None else ""
    raise ConfigError(
        f"ticket {ticket.id!r} asks for n_rollouts={ticket.n_rollouts}, but every group here has {group_size} "
        f"rollouts{made}: groups of different sizes are not supported; have `ask` give the n_rollouts that it is given"
    )
