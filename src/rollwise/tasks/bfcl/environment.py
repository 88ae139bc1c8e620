"""BFCL's multi-turn conversations as environments, with a continuous reward made of the package's own checks."""

from __future__ import annotations

import functools
import json
import logging
from collections.abc import Sequence
from typing import Any

from rollwise.tasks.bfcl.data import Item, item, package_module
from rollwise.tasks.bfcl.prompts import request_text
from rollwise.tasks.bfcl.services import Services, error_text, failed
from rollwise.tasks.tool_conversation import Conversation, ToolError

logger = logging.getLogger(__name__)


class BFCLEnvironment(Conversation):
    """One conversation with the simulated services; two tools, `call` and `next_request`.

    The functions differ from item to item, and some are not described until a later turn, so they stand in the system
    message and are called through one tool: TRL renders a fixed set of tools for each environment. As in the package, a
    function that is withheld is not described, but can be called: one reference does so.
    """

    # ---- tools ----

    def call(self, function: str, arguments: dict) -> str:  # type: ignore[type-arg] # TRL's schema takes a plain dict
        """Call one of the functions that are described in the system message.

        Args:
            function: The function's name.
            arguments: A value for each of its parameters, by name.

        Returns:
            What the function answers.
        """
        self._check_running()
        self._tried = True
        given: Any = arguments
        if isinstance(given, str):  # many models write the inner object as text
            given = _object(given)
        try:
            answer = self._services.run(function, given)
        except ToolError as error:
            self._answers.append(error_text(error))
            raise
        self._answers.append(answer)
        if not failed(answer):
            self._called = True
        return answer

    # ---- the conversation ----

    def _open(self, row: dict[str, Any]) -> Sequence[str]:
        self._item: Item = item(row["id"])
        self._services, self._reference = Services(self._item), Services(self._item)
        self._answers: list[str] = []  # of all turns so far
        self._tried = False  # in this turn, a call, whatever came of it
        self._called = False  # in this turn, a call that was executed without an error
        return [request_text(self._item, turn) for turn in range(len(self._item.requests))]

    def _credit(self, turn: int) -> float | None:
        tried, called = self._tried, self._called
        self._tried = self._called = False
        expected = [self._reference.run_reference(call) for call in self._item.reference[turn]]
        if not expected:
            return float(not tried)
        if not called:
            return 0.0
        try:
            changes = changing_turns(self._item.id)[turn]
            return turn_credit(
                self._services.instances, self._reference.instances, self._answers, expected, turn, changes=changes
            )
        except Exception:  # the comparison walks objects that the policy has shaped: not worth a training run
            logger.warning("the state of %s after turn %d could not be compared", self._item.id, turn, exc_info=True)
            return None


def turn_credit(
    reached: dict[str, Any],
    wanted: dict[str, Any],
    answers: list[str],
    expected: list[str],
    turn: int,
    *,
    changes: bool = True,
) -> float:
    """Credit for the state and for the answers, by the package's `state_checker` and `response_checker`.

    METIS (appendix A.2) says that the reward is computed against the calls executed, and no more; the formula is ours.
    Where the reference changes no state, a policy that did nothing has the right one: so there the answers earn all,
    and a state that is wrong costs half of it.

    Args:
        reached: the policy's services after the turn, by name.
        wanted: the reference's.
        answers: what the policy's calls were answered, in all turns so far, as the package counts them.
        expected: what the reference's calls of this turn were answered, (E,), E > 0.
        turn: its number.
        changes: whether the reference's calls of this turn change the state.

    Returns:
        With s = 1 if every public attribute of every service agrees, else 0, and a the share of `expected` that is
        among `answers`: 0.5 s + 0.5 a where the reference changes the state, else (0.5 + 0.5 s) a.
        Either is 1 exactly if both checkers pass.
    """
    checker = package_module("eval_checker.multi_turn_eval.multi_turn_checker")
    state: bool = checker.state_checker(reached, wanted)["valid"]
    response = checker.response_checker(answers, expected, turn)
    missing: int = 0 if response["valid"] else len(response["details"]["missing_items"])
    answered = 1.0 - missing / len(expected)
    return 0.5 * state + 0.5 * answered if changes else (0.5 + 0.5 * state) * answered


@functools.cache
def changing_turns(item_id: str) -> tuple[bool, ...]:
    """(T,) whether the reference's calls of each turn change a public attribute of a service.

    Raises:
        ConfigError: there is no such item, or no such package.
    """
    checker = package_module("eval_checker.multi_turn_eval.multi_turn_checker")
    one = item(item_id)
    before, after = Services(one), Services(one)
    found = []
    for turn in one.reference:
        for call in turn:
            after.run_reference(call)
        found.append(not checker.state_checker(after.instances, before.instances)["valid"])
        for call in turn:
            before.run_reference(call)
    return tuple(found)


def _object(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError, MemoryError):  # the latter two: nested too deeply
        raise ToolError(f"arguments must be an object with a value for each parameter, got {text!r:.80}") from None
