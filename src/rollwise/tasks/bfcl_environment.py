"""BFCL's multi-turn conversations as environments, with a continuous reward made of the package's own checks."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from typing import Any

from rollwise.tasks.bfcl_data import Item, item, package_module
from rollwise.tasks.bfcl_prompts import request_text
from rollwise.tasks.bfcl_services import Services, error_text
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
        self._called = True
        given: Any = arguments
        if isinstance(given, str):  # many models write the inner object as text
            given = _object(given)
        try:
            answer = self._services.run(function, given)
        except ToolError as error:
            self._answers.append(error_text(error))
            raise
        self._answers.append(answer)
        return answer

    # ---- the conversation ----

    def _open(self, row: dict[str, Any]) -> Sequence[str]:
        self._item: Item = item(row["id"])
        self._services, self._reference = Services(self._item), Services(self._item)
        self._answers: list[str] = []  # of all turns so far
        self._called = False  # in this turn
        return [request_text(self._item, turn) for turn in range(len(self._item.requests))]

    def _credit(self, turn: int) -> float | None:
        called, self._called = self._called, False
        expected = [self._reference.run_reference(call) for call in self._item.reference[turn]]
        if not expected:
            return float(not called)
        if not called:
            return 0.0
        try:
            return turn_credit(self._services.instances, self._reference.instances, self._answers, expected, turn)
        except Exception:  # the comparison walks objects that the policy has shaped: not worth a training run
            logger.warning("the state of %s after turn %d could not be compared", self._item.id, turn, exc_info=True)
            return None


def turn_credit(
    reached: dict[str, Any], wanted: dict[str, Any], answers: list[str], expected: list[str], turn: int
) -> float:
    """Half for the state, half for the answers, by the package's `state_checker` and `response_checker`.

    Args:
        reached: the policy's services after the turn, by name.
        wanted: the reference's.
        answers: what the policy's calls were answered, in all turns so far, as the package counts them.
        expected: what the reference's calls of this turn were answered, (E,), E > 0.
        turn: its number.

    Returns:
        0.5 [every public attribute of every service agrees] + 0.5 (share of `expected` that is among `answers`).
        It is 1 exactly if both checkers pass.
    """
    checker = package_module("eval_checker.multi_turn_eval.multi_turn_checker")
    state: bool = checker.state_checker(reached, wanted)["valid"]
    response = checker.response_checker(answers, expected, turn)
    missing: int = 0 if response["valid"] else len(response["details"]["missing_items"])
    return 0.5 * state + 0.5 * (1.0 - missing / len(expected))


def _object(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        raise ToolError(f"arguments must be an object with a value for each parameter, got {text!r:.80}") from None
