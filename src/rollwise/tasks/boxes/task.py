"""Boxes: put balls into boxes and take them out through tools, request by request. The built-in tool-calling task.

Small enough for a tiny policy on a CPU, and yet all there is to an agentic task: state, several turns, tool results
that must be read (how many balls are in a box that is to be emptied is known only by looking), partial success.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from rollwise.options import Range, Share, check_number
from rollwise.tasks.base import HeldOut
from rollwise.tasks.boxes.scenarios import EMPTY, MOST, NAMES, PUT, TAKE, Order, Scenario, read_scenario
from rollwise.tasks.seeding import distinct, in_share, rng_for
from rollwise.tasks.tool_conversation import Conversation, ToolError, ToolTask, exchange

_GIVE_UP = 2000
DONE = "Done."


class BoxesEnvironment(Conversation):
    """Four boxes, a to d, of up to nine balls each."""

    def look(self, box: str) -> int:
        """See how many balls are in a box.

        Args:
            box: The box's name.

        Returns:
            How many balls are in it.
        """
        return self._contents[self._checked(box)]

    def put(self, box: str, amount: int) -> int:
        """Put balls into a box.

        Args:
            box: The box's name.
            amount: How many balls.

        Returns:
            How many balls are in it now.
        """
        return self._change(self._checked(box), _amount(amount))

    def take(self, box: str, amount: int) -> int:
        """Take balls out of a box.

        Args:
            box: The box's name.
            amount: How many balls.

        Returns:
            How many balls are in it now.
        """
        return self._change(self._checked(box), -_amount(amount))

    def _open(self, row: dict[str, Any]) -> Sequence[str]:
        self._scenario = read_scenario(row["id"])
        self._contents = dict(zip(NAMES, self._scenario.contents, strict=True))
        self._wanted = dict(self._contents)
        return self._scenario.requests

    def _credit(self, turn: int) -> float:
        orders = self._scenario.turns[turn]
        for order in orders:
            order.apply(self._wanted)
        return turn_credit(self._contents, self._wanted, {order.box for order in orders})

    def _checked(self, box: Any) -> str:
        self._check_running()
        if box not in self._contents:
            raise ToolError(f"there is no box {box!r:.20}")
        return str(box)

    def _change(self, box: str, by: int) -> int:
        now = self._contents[box] + by
        if not 0 <= now <= MOST:
            raise ToolError(f"box {box} holds {self._contents[box]} of {MOST}")
        self._contents[box] = now
        return now


def turn_credit(contents: Mapping[str, int], wanted: Mapping[str, int], ordered: set[str]) -> float:
    """The share of boxes that hold what they should, among those of this turn's orders and those that are wrong.

    A box that is wrong since an earlier turn counts until it is put right. Spurious changes cost as much as missing
    ones.

    >>> turn_credit({"a": 1, "b": 2, "c": 0}, {"a": 1, "b": 3, "c": 0}, {"a", "b"})
    0.5
    """
    counted = ordered | {box for box in wanted if contents[box] != wanted[box]}
    return sum(contents[box] == wanted[box] for box in counted) / len(counted)


class Boxes(ToolTask, name="boxes"):
    """Balls in four boxes, moved by the tools `look`, `put` and `take`; reward: the mean credit over turns, in [0, 1].

    A turn's credit is the share of boxes that hold what they should after it. Held-out scenarios never occur in
    training, whatever the seeds. A category is a number of turns.

    Args:
        turns: Numbers of turns; all alike often.
        orders: The most orders in a turn.
        empty: The share of orders to empty a box, for which one must look first.
        slips: The share of wrong digits and boxes in the demonstrations, which leaves reinforcement something to do.
        eval_share: The share of all scenarios that is held out.

    Raises:
        ConfigError: an option is out of its range.

    >>> Boxes().train_records(1, seed=0)[0]["prompt"][-1]["role"]
    'user'
    """

    def __init__(
        self,
        *,
        turns: Sequence[Annotated[int, Range(1, 8)]] = (1, 2, 3),
        orders: Annotated[int, Range(1, len(NAMES))] = 2,
        empty: Share = 0.25,
        slips: Share = 0.3,
        eval_share: HeldOut = 0.2,
    ) -> None:
        self.turns, self.orders, self.empty = tuple(turns), orders, empty
        self.slips, self.eval_share = slips, eval_share

    def environment(self) -> BoxesEnvironment:
        return BoxesEnvironment()

    @property
    def max_completion_length(self) -> int:
        """Enough for calls of some 60 tokens each, results included."""
        return 60 * self.max_tool_calls

    @property
    def max_tool_calls(self) -> int:
        """Two for each order, one for each request, and as many mistakes as turns."""
        return max(self.turns) * (2 * self.orders + 2)

    def train_records(self, n: int, seed: int) -> list[dict[str, Any]]:
        return self._records(n, rng_for(seed, "boxes/train"), held_out=False)

    def eval_records(self, n: int, seed: int) -> list[dict[str, Any]]:
        return self._records(n, rng_for(seed, "boxes/eval"), held_out=True)

    def demonstrations(self, n: int, seed: int, accuracy: float | None = None) -> list[dict[str, Any]]:
        """`n` conversations of a noisy demonstrator, with the scenario's `id`; `prompt` and `completion` are messages.

        The tools' results are what the environment answered, errors included.
        """
        slips = self.slips if accuracy is None else 1.0 - check_number("accuracy", accuracy, low=0.0, high=1.0)
        rng = rng_for(seed, "boxes/demonstrations")
        environment = self.environment()
        demos: list[dict[str, Any]] = []
        while len(demos) < n:
            scenario = self._draw(rng)
            if not self.held_out(scenario):
                environment.reset(**record(scenario))
                said = _played(environment, scenario, slips, rng)
                demos.append({"id": scenario.key, "prompt": prompt_of(scenario), "completion": said})
        return demos

    def held_out(self, scenario: Scenario) -> bool:
        """Whether this scenario belongs to the held-out side."""
        return in_share(f"boxes|{scenario.key}", self.eval_share)

    def fingerprint(self) -> dict[str, Any]:
        return {
            "task": self.name,
            "version": 1,  # to be raised when the same options come to give other demonstrations
            "turns": list(self.turns),
            "orders": self.orders,
            "empty": self.empty,
            "slips": self.slips,
            "eval_share": self.eval_share,
        }

    def _records(self, n: int, rng: random.Random, *, held_out: bool) -> list[dict[str, Any]]:
        found = distinct(
            (self._draw(rng) for _ in itertools.count()),
            key=lambda scenario: scenario.key,
            wanted=lambda scenario: self.held_out(scenario) is held_out,
            seen=set(),
            give_up=_GIVE_UP,
        )
        return [record(scenario) for scenario in itertools.islice(found, max(n, 0))]

    def _draw(self, rng: random.Random) -> Scenario:
        contents = [rng.randint(1, MOST - 1) for _ in NAMES]
        now = dict(zip(NAMES, contents, strict=True))
        turns = []
        for _ in range(rng.choice(self.turns)):
            boxes = rng.sample(NAMES, rng.randint(1, self.orders))  # each box once a turn
            turns.append(tuple(self._order(box, now, rng) for box in boxes))
        return Scenario(tuple(contents), tuple(turns))

    def _order(self, box: str, now: dict[str, int], rng: random.Random) -> Order:
        if now[box] and rng.random() < self.empty:
            order = Order(EMPTY, box)
        elif now[box] == MOST or (now[box] and rng.random() < 0.5):
            order = Order(TAKE, box, rng.randint(1, now[box]))
        else:
            order = Order(PUT, box, rng.randint(1, MOST - now[box]))
        order.apply(now)
        return order


def prompt_of(scenario: Scenario) -> list[dict[str, str]]:
    """The system message and the first request."""
    system = (
        "You keep four boxes, a to d. Do what the user asks with the tools, then call next_request for the next "
        "request. When there are no more, answer without calling a tool."
    )
    return [{"role": "system", "content": system}, {"role": "user", "content": scenario.requests[0]}]


def record(scenario: Scenario) -> dict[str, Any]:
    """A scenario's row of a data set. Difficulty: the tool calls that it takes, one for each request included."""
    calls = sum(1 + (order.verb == EMPTY) for turn in scenario.turns for order in turn)
    return {
        "id": scenario.key,
        "prompt": prompt_of(scenario),
        "category": f"{len(scenario.turns)} turns",
        "difficulty": float(calls + len(scenario.turns)),
    }


def _amount(amount: Any) -> int:
    if isinstance(amount, bool) or not isinstance(amount, int) or not 1 <= amount <= MOST:
        raise ToolError(f"amount must be a whole number from 1 to {MOST}, got {amount!r:.20}")
    return amount


def _played(
    environment: BoxesEnvironment, scenario: Scenario, slips: float, rng: random.Random
) -> list[dict[str, Any]]:
    """The messages of a conversation in which some digits and boxes are wrong."""
    messages: list[dict[str, Any]] = []

    def step(name: str, **arguments: Any) -> Any:
        try:
            answer = getattr(environment, name)(**arguments)
        except ToolError as error:
            answer = {"error": str(error)}
        messages.extend(exchange(name, arguments, answer))
        return answer

    for turn in scenario.turns:
        for order in turn:
            box = rng.choice(NAMES) if rng.random() < slips / 2 else order.box
            seen = step("look", box=box) if order.verb == EMPTY else order.amount
            amount = rng.randint(1, MOST) if rng.random() < slips / 2 else seen
            if amount:
                step(PUT if order.verb == PUT else TAKE, box=box, amount=amount)
        step("next_request")
    messages.append({"role": "assistant", "content": DONE})
    return messages
