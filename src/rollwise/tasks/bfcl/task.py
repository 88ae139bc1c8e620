"""BFCL v3's multi-turn function calling: conversations with simulated services that must end in a given state.

Data, simulators and checks are the package's (`bfcl-eval`, Apache-2.0); see `docs/agentic.md`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from rollwise.errors import ConfigError
from rollwise.options import CountOrZero, InnerShare
from rollwise.rng import check_seed, stream_generator
from rollwise.tasks.bfcl.data import CATEGORIES, VERSION, Call, Category, Item, documentation, item, items_of
from rollwise.tasks.bfcl.environment import BFCLEnvironment
from rollwise.tasks.bfcl.prompts import prompt_of
from rollwise.tasks.bfcl.services import Services, failed
from rollwise.tasks.tool_conversation import ToolTask, exchange

SCORED = CATEGORIES[:-1]
_SCENARIOS = 200


class BFCL(ToolTask, name="bfcl"):
    """Multi-turn function calling against simulated services; reward: the mean credit over turns, in [0, 1].

    A turn's credit is for the state that its calls left behind and for what they were answered, by the package's own
    checks against the reference; a turn without a call that worked has none. Where nothing can be done yet, 1 for
    calling nothing. See `turn_credit`.

    Args:
        categories: of base, miss_func, miss_param, long_context, composite. The package has retired the last: of its
            200 references 165 can't be read, fail, or are answered with an error by today's simulators, so only 35 are
            taken.
        split: what is held out: "scenario", whole conversations in all their variants; or "item", items of each
            category by themselves, as METIS's appendix A.2 has it. The categories are variants of the same 200
            conversations, so with "item" most held-out ones have a twin in training.
        eval_share: the share that is held out, of every category.
        split_seed: which ones. Nothing else changes the split.

    Raises:
        ConfigError: an option is out of its range.
    """

    def __init__(
        self,
        *,
        categories: Sequence[Category] = SCORED,
        split: Literal["scenario", "item"] = "scenario",
        eval_share: InnerShare = 0.2,
        split_seed: CountOrZero = 0,
    ) -> None:
        if len(set(categories)) != len(categories):
            raise ConfigError(f"categories must be different ones, got {categories!r}")
        self.categories, self.split = tuple(categories), split
        self.eval_share, self.split_seed = eval_share, split_seed

    def environment(self) -> BFCLEnvironment:
        return BFCLEnvironment()

    @property
    def max_completion_length(self) -> int:
        """What most conversations need of calls and answers together; long_context needs several times as many."""
        return 4096

    @property
    def max_tool_calls(self) -> int:
        """Rounds of tool calls: the longest reference has fewer, and mistakes take some."""
        return 40

    def train_records(self, n: int, seed: int) -> list[dict[str, Any]]:
        """Up to `n` records, in an order that `seed` decides: `id`, `prompt`, `category`, `difficulty`.

        Raises:
            ConfigError: the package is absent or of another version.
        """
        return self._records(n, seed, held_out=False)

    def eval_records(self, n: int, seed: int) -> list[dict[str, Any]]:
        return self._records(n, seed, held_out=True)

    def demonstrations(self, n: int, seed: int, accuracy: float | None = None) -> list[dict[str, Any]]:
        """Up to `n` training items' references as conversations; `prompt` and `completion` are chat messages.

        The tools' results are what the environment answered.

        Raises:
            ConfigError: the package is absent, or `accuracy` is asked for: references have no mistakes.
        """
        if accuracy is not None:
            raise ConfigError("the demonstrations of 'bfcl' are its references; accuracy can't be set")
        rows = self.train_records(n, seed)
        return [{"prompt": row["prompt"], "completion": reference_messages(row)} for row in rows]

    def fingerprint(self) -> dict[str, Any]:
        return {
            "task": self.name,
            "package": VERSION,
            "categories": list(self.categories),
            "split": self.split,
            "eval_share": self.eval_share,
            "split_seed": self.split_seed,
        }

    def _records(self, n: int, seed: int, *, held_out: bool) -> list[dict[str, Any]]:
        chosen = [one for category in self.categories for one in self._side(category, held_out=held_out)]
        order = stream_generator(check_seed(seed), f"bfcl/{held_out}").permutation(len(chosen))
        return [record(chosen[at]) for at in order[:n]]

    def _side(self, category: str, *, held_out: bool) -> list[Item]:
        items = [one for one in items_of(category).values() if category in SCORED or usable(one)]
        stream = "bfcl/split" if self.split == "scenario" else f"bfcl/split/{category}"
        order = stream_generator(self.split_seed, stream).permutation(_SCENARIOS)
        out = set(order[: round(self.eval_share * _SCENARIOS)].tolist())
        return [one for one in items if (one.scenario in out) is held_out]


def record(one: Item) -> dict[str, Any]:
    """An item's row of a data set; the environment finds the rest by the id. Difficulty: calls in the reference."""
    return {
        "id": one.id,
        "prompt": prompt_of(one),
        "category": one.category,
        "difficulty": float(sum(len(turn) for turn in one.reference)),
    }


def reference_messages(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The messages of a conversation in which a record's reference is called, turn by turn."""
    one, environment = item(row["id"]), BFCLEnvironment()
    environment.reset(**row)
    messages: list[dict[str, Any]] = []
    for turn in one.reference:
        for call in turn:
            arguments = named_arguments(one, call)
            answer = environment.call(call.function, arguments)
            messages += exchange("call", {"function": call.function, "arguments": arguments}, answer)
        messages += exchange("next_request", {}, environment.next_request())
    return [*messages, {"role": "assistant", "content": "Done."}]


def named_arguments(one: Item, call: Call) -> dict[str, Any]:
    """A reference's arguments, all by name, as JSON could hold them."""
    docs = {name: doc for api in one.apis for name, doc in documentation(api).items()}
    names = list(docs[call.function]["parameters"]["properties"])
    given = dict(zip(names, call.args, strict=False)) | dict(call.kwargs)
    return {name: list(value) if isinstance(value, tuple) else value for name, value in given.items()}


def usable(one: Item) -> bool:
    """Whether none of the reference's calls fails or is answered with an error."""
    services = Services(one)
    answers = [services.run_reference(call) for turn in one.reference for call in turn]
    return not any(failed(answer) for answer in answers)
