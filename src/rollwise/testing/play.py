"""Plays scripts of asks and tells against a curriculum, as trainers do: early, late, partial, never.

A script is a list of actions, so hypothesis can make it and shrink it. The world behind it is deterministic: the
rewards of a ticket follow from its prompt and its number, never from the order of events.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from rollwise.curricula import Curriculum
from rollwise.pool import PromptPool
from rollwise.tickets.outcome import Outcome, RewardSpec
from rollwise.tickets.ticket import Ticket, plain_id

Script = list[tuple[str, int]]

_ACTIONS = ["ask", "probe", "tell", "tell-newest", "tell-partial", "tell-failed", "lose"]
actions = st.tuples(st.sampled_from(_ACTIONS), st.integers(1, 12))
scripts = st.lists(actions, max_size=30)

few = settings(
    max_examples=max(settings().max_examples // 4, 1),
    deadline=None,
    suppress_health_check=[HealthCheck.differing_executors, HealthCheck.too_slow],
)
"""Settings of the property tests: a quarter of the examples of hypothesis' profile, 25 of its default one."""


def make_pool(n: int, *, order: list[int] | None = None) -> PromptPool:
    """A pool of n prompts `p0`, `p1`, ... with every column that a method may need; `order` lists their numbers."""
    numbers = list(range(n)) if order is None else order
    return PromptPool(
        ids=[f"p{i}" for i in numbers],
        prompts=[f"prompt {i}" for i in numbers],
        columns={
            "category": [f"c{i % 3}" for i in numbers],
            "difficulty": [(i * 7919 % 101) / 100 for i in numbers],
            "reference_pass_rates": [[(i % 5) / 8, (i % 5) / 8 + 0.3] for i in numbers],
            "embedding": [[float(i % 4), float(i % 7), 1.0] for i in numbers],
        },
    )


class Contract:
    """The base of every part of the contract."""

    def make(self, pool: PromptPool | None = None, **core: Any) -> Curriculum:
        """The curriculum under test; `core` may hold seed, reward_spec and expire_after."""
        raise NotImplementedError

    def _loaded(self, curriculum: Curriculum, **core: Any) -> Curriculum:
        """Another of the same prompts that goes on from the state of this one."""
        loaded = self.make(make_pool(len(curriculum.pool)), **core)
        loaded.load_state_dict(json.loads(json.dumps(curriculum.state_dict(), allow_nan=False)))
        return loaded


class Player:
    """Holds the tickets between ask and tell, and makes their rewards."""

    def __init__(self, curriculum: Curriculum, *, group: int = 4, rewards: str = "binary") -> None:
        self.curriculum = curriculum
        self.group = group
        self.rewards = rewards
        self.tickets: list[Ticket] = []
        self.asked: list[list[str]] = []

    def outcome(self, ticket: Ticket, kind: str = "tell") -> Outcome:
        """The outcome of a ticket: some prompts always succeed, some never, the others now and then."""
        if kind == "tell-failed":
            return Outcome(ticket.id, rewards=[], failed=ticket.n_rollouts or self.group)
        level, group = int(ticket.prompt_id[1:]) % 5, ticket.n_rollouts or self.group
        raw = [zlib.crc32(f"{ticket.prompt_id}/{plain_id(ticket.id)}/{i}".encode()) % 5 for i in range(group)]
        binary = [float(level == 4 or (level != 0 and r <= level)) for r in raw]
        graded = [1.0 if b else 0.1 * (r % 2) for b, r in zip(binary, raw, strict=True)]
        signed = [2.0 * b - 1.0 for b in binary]
        rewards = {"binary": binary, "graded": graded, "signed": signed}[self.rewards]
        if kind == "tell-partial":
            return Outcome(ticket.id, rewards=rewards[: group // 2], failed=1)
        return Outcome(ticket.id, rewards=rewards)

    def act(self, action: str, amount: int) -> None:
        """Do one action of a script."""
        if action == "ask":
            tickets = self.curriculum.ask(amount, n_rollouts=self.group)
            self.asked.append([t.prompt_id for t in tickets])
            self.tickets += tickets
        elif action == "probe":
            self.tickets += self.curriculum.probe(amount, n_rollouts=self.group)
        elif action == "lose":
            del self.tickets[:amount]
        else:
            newest = action == "tell-newest"
            chosen = self.tickets[-amount:] if newest else self.tickets[:amount]
            self.curriculum.tell([self.outcome(t, action) for t in reversed(chosen)])
            self.tickets = self.tickets[:-amount] if newest else self.tickets[amount:]


def play(curriculum: Curriculum, script: Script, **world: Any) -> Player:
    """Run a whole script; the player holds the prompts asked (`asked`) and the tickets still open (`tickets`)."""
    player = Player(curriculum, **world)
    for action, amount in script:
        player.act(action, amount)
    return player


def most_open(script: Script) -> int:
    """How many tickets a script can leave open at most, as it may lose all of them."""
    return sum(amount for action, amount in script if action in ("ask", "probe"))


def check_refused(
    curriculum: Curriculum, error: type[Exception], call: Callable[[Any], object], wrong: Iterable[Any]
) -> None:
    """Fail unless `call` raises `error` for each of `wrong` and changes nothing; the failure names the one."""
    before = snapshot(curriculum)
    for one in wrong:
        try:
            call(one)
        except error:
            assert snapshot(curriculum) == before, one
        else:
            pytest.fail(f"{one}: was taken")


def signed() -> RewardSpec:
    """The range of rewards -1 and +1."""
    return RewardSpec(low=-1.0, high=1.0)


def untagged(value: Any) -> Any:
    """A ticket, a saved state, or a list of these, without the tags of ticket ids, which differ after each load.

    >>> from rollwise import PromptPool, Uniform
    >>> one, two = (Uniform(PromptPool(ids=["a", "b"])) for _ in range(2))
    >>> two.load_state_dict(one.state_dict()).matched
    2
    >>> first, second = one.ask(2), two.ask(2)
    >>> first == second, first == untagged(second)
    (False, True)
    """
    if isinstance(value, list):
        return [untagged(one) for one in value]
    if isinstance(value, Ticket):
        return replace(value, id=plain_id(value.id))
    ledger = dict(value["ledger"], incarnations=[])
    for book in ("open", "expired"):
        ledger[book] = dict(ledger[book], id=[plain_id(id_) for id_ in ledger[book]["id"]])
    return {**value, "ledger": ledger}


def snapshot(curriculum: Curriculum) -> str:
    """The whole state as text, so that two states can be compared."""
    return json.dumps(curriculum.state_dict(), sort_keys=True, allow_nan=False)
