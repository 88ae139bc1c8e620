"""BFCL: loaded from its own package, split, driven call by call, and rewarded as the package's checker would."""

from __future__ import annotations

import contextlib
import decimal
import itertools
from importlib import metadata
from types import SimpleNamespace
from typing import Any

import pytest

from rollwise.errors import ConfigError
from rollwise.tasks import BFCL, ToolError, bfcl_environment
from rollwise.tasks.bfcl.data import CATEGORIES, VERSION, Call, Item, item, items_of, package_folder, parse_call
from rollwise.tasks.bfcl.environment import BFCLEnvironment, changing_turns, turn_credit
from rollwise.tasks.bfcl.prompts import function_lines, request_text
from rollwise.tasks.bfcl.services import Services, answer_text, check_arguments
from rollwise.tasks.bfcl.task import SCORED, named_arguments, reference_messages


def _installed() -> bool:
    try:
        return metadata.version("bfcl-eval") == VERSION
    except metadata.PackageNotFoundError:
        return False


needs_package = pytest.mark.skipif(not _installed(), reason=f"bfcl-eval {VERSION}, whose data these are, is absent")
POWER = {
    "name": "power",
    "parameters": {
        "properties": {"base": {"type": "float"}, "exponent": {"type": "float"}},
        "required": ["base", "exponent"],
    },
}


# ---- what needs no package ----


def test_without_the_package_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def version(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    package_folder.cache_clear()
    monkeypatch.setattr(metadata, "version", version)
    with pytest.raises(ConfigError, match=f"not installed; pip install --no-deps bfcl-eval=={VERSION}"):
        package_folder()
    monkeypatch.setattr(metadata, "version", lambda name: "2025.1.1")
    with pytest.raises(ConfigError, match=f"need bfcl-eval {VERSION}, found 2025.1.1"):
        package_folder()


def test_references_are_read_not_executed() -> None:
    assert parse_call("sort('a.txt')") == Call("sort", ("a.txt",), {})
    assert parse_call("f(x=-1.5, tags=['a'], deep={'k': (1, True)})") == Call(
        "f", (), {"x": -1.5, "tags": ["a"], "deep": {"k": (1, True)}}
    )
    for text in ("__import__('os').system('true')", "f(g())", "f(**{'a': 1})", "f(", "f; g", "1 + 1"):
        assert parse_call(text) is None


def test_arithmetic_that_could_take_for_ever_is_refused() -> None:
    check_arguments(POWER, {"base": 2, "exponent": 10}, typed=True)
    for arguments, message in [
        ({"base": 9, "exponent": 9_999_999}, "exponent must be a number within 1000"),
        ({"base": 10**16, "exponent": 2}, "base must be a number within 1e"),
        ({"base": float("nan"), "exponent": 2}, "base must be a number"),
        ({"base": "x" * 9, "exponent": 2}, "base must be of type float"),
        ({"base": True, "exponent": 2}, "base must be of type float"),
        ({"base": 2}, "needs a value for 'exponent'"),
        ({"base": 2, "exponent": 2, "z": 1}, "no parameter 'z'; it has: base, exponent"),
        ([2, 3], "arguments must be an object"),
    ]:
        with pytest.raises(ToolError, match=message):
            check_arguments(POWER, arguments, typed=True)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "9" * 100_000, "{" * 100_000])
def test_arguments_nested_without_end_are_a_failed_call(text: str) -> None:
    """TRL hands a `ToolError` to the policy; any other error would end the training."""
    environment = BFCLEnvironment()
    with pytest.raises(ToolError, match="arguments must be an object"):
        environment.call("f", text)  # type: ignore[arg-type]


def test_values_nested_without_end_are_a_failed_call() -> None:
    """The parser may have had more of the stack left than the checks have."""
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    services = Services.__new__(Services)
    services._docs = {"power": ("MathAPI", POWER), "any": ("Files", {**POWER, "name": "any"})}
    for function in ("power", "any"):
        for arguments in ({"base": deep, "exponent": deep}, deep):
            with pytest.raises(ToolError, match="nested too deeply"):
                services.run(function, arguments)


def test_a_reference_nested_without_end_is_no_call() -> None:
    for text in ("f(" + "[" * 100_000, "f(" + "[" * 5000 + "]" * 5000 + ")", "f(" + "-" * 5000 + "1)", "f({[]: 1})"):
        assert parse_call(text) is None


def test_a_function_is_described_in_a_line() -> None:
    doc = {
        "name": "cd",
        "description": "This tool belongs to the files. Tool description: Change the\n folder",
        "parameters": {
            "properties": {
                "folder": {"type": "string", "description": "Where to"},
                "how": {"type": "dict", "description": "", "properties": {"fast": {"type": "boolean"}}},
            },
            "required": ["folder"],
        },
    }
    assert function_lines({"cd": doc}) == [
        "- cd(folder: string, how: dict?): Change the folder. folder: Where to. how:  Its entries: fast (boolean)."
    ]


def test_answers_are_written_as_the_package_writes_them() -> None:
    assert answer_text({"x": decimal.Decimal("1.5")}) == "{'x': Decimal('1.5')}"


class Checker:
    """Stands for the package's checks: the state is right where both say so, and each answer is looked for."""

    @staticmethod
    def state_checker(reached: dict[str, Any], wanted: dict[str, Any]) -> dict[str, Any]:
        return {"valid": reached == wanted}

    @staticmethod
    def response_checker(answers: list[str], expected: list[str], turn: int) -> dict[str, Any]:
        missing = [answer for answer in expected if answer not in answers]
        return {"valid": not missing, "details": {"missing_items": missing}}


def test_credit_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half and half where the reference changes the state; else the answers earn all, half where the state is wrong."""
    monkeypatch.setattr(bfcl_environment, "package_module", lambda name: Checker)
    right, wrong = {"api": 1}, {"api": 2}
    found = {
        (changes, reached is right, len(answers)): turn_credit(reached, right, answers, ["a", "b"], 0, changes=changes)
        for changes in (True, False)
        for reached in (right, wrong)
        for answers in ([], ["a"], ["a", "b"])
    }
    assert [found[True, True, n] for n in range(3)] == [0.5, 0.75, 1.0]
    assert [found[True, False, n] for n in range(3)] == [0.0, 0.25, 0.5]
    assert [found[False, True, n] for n in range(3)] == [0.0, 0.5, 1.0]
    assert [found[False, False, n] for n in range(3)] == [0.0, 0.25, 0.5]


class Played:
    """Stands for the services of an item, with one function that works and two that do not."""

    def __init__(self, one: Any) -> None:
        self.instances = {"api": 0}

    def run(self, function: str, arguments: Any) -> str:
        if function == "unknown":
            raise ToolError("there is no function")
        return '{"error": "no such file"}' if function == "failing" else "done"

    def run_reference(self, call: Any) -> str:
        return "done"


@pytest.mark.parametrize(
    ("calls", "credits"),
    [
        ([], [0.0, 1.0]),
        (["unknown"], [0.0, 0.0]),
        (["failing"], [0.0, 0.0]),
        (["unknown", "failing"], [0.0, 0.0]),
        (["failing", "working"], [1.0, 0.0]),
        (["working", "unknown"], [1.0, 0.0]),
    ],
)
def test_a_failed_call_is_none(calls: list[str], credits: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    """Two turns: the second's reference calls nothing, so there a try is one too many, as in the package."""
    one = SimpleNamespace(id="one", requests=("a", "b"), reference=((Call("working", (), {}),), ()))
    monkeypatch.setattr(bfcl_environment, "item", lambda item_id: one)
    monkeypatch.setattr(bfcl_environment, "Services", Played)
    monkeypatch.setattr(bfcl_environment, "request_text", lambda item, turn: "")
    monkeypatch.setattr(bfcl_environment, "changing_turns", lambda item_id: (True, False))
    monkeypatch.setattr(bfcl_environment, "package_module", lambda name: Checker)
    environment = BFCLEnvironment()
    environment.reset(id="one")
    for _ in range(2):
        for function in calls:
            with contextlib.suppress(ToolError):
                environment.call(function, {})
        environment.next_request()
    assert environment._credits == credits


def test_bad_options_are_refused() -> None:
    for options in ({"categories": ("simple",)}, {"categories": ()}, {"split": "random"}, {"eval_share": 0}):
        with pytest.raises(ConfigError, match=next(iter(options))):
            BFCL(**options)


# ---- what does ----


@needs_package
def test_the_four_categories_have_200_items_each_and_the_fifth_has_35_that_work() -> None:
    assert [len(items_of(category)) for category in CATEGORIES] == [200, 200, 200, 200, 184]
    task = BFCL(categories=CATEGORIES)
    train, held_out = task.train_records(2000, 0), task.eval_records(2000, 0)
    counts = {c: [sum(r["category"] == c for r in side) for side in (train, held_out)] for c in CATEGORIES}
    assert counts["composite"][0] + counts["composite"][1] == 35
    assert counts["composite"][1] > 0
    assert all(counts[c] == [160, 40] for c in SCORED)
    assert len({r["id"] for r in train + held_out}) == 835


@needs_package
def test_a_conversations_variants_stay_on_one_side() -> None:
    def numbers(rows: list[dict[str, Any]]) -> set[int]:
        return {int(row["id"].rpartition("_")[2]) for row in rows}

    task = BFCL()
    assert not numbers(task.train_records(2000, 0)) & numbers(task.eval_records(2000, 0))
    by_item = BFCL(split="item")
    assert numbers(by_item.train_records(2000, 0)) & numbers(by_item.eval_records(2000, 0))
    assert not {r["id"] for r in by_item.train_records(2000, 0)} & {r["id"] for r in by_item.eval_records(2000, 0)}
    assert {r["id"] for r in task.eval_records(2000, 0)} == {r["id"] for r in task.eval_records(2000, 5)}
    assert BFCL(split_seed=1).eval_records(2000, 0) != task.eval_records(2000, 0)


@needs_package
def test_the_prompt_describes_what_is_offered_and_no_more() -> None:
    row = next(r for r in BFCL().train_records(2000, 0) + BFCL().eval_records(2000, 0) if r["id"].endswith("func_0"))
    system, user = row["prompt"]
    assert "- grep(file_name: string, pattern: string)" in system["content"]
    assert "- sort(" not in system["content"]  # withheld until the fourth turn
    assert "final_report.pdf" in user["content"]
    assert request_text(item("multi_turn_miss_func_0"), 3).startswith("- sort(file_name: string): Sort")


@needs_package
@pytest.mark.parametrize("category", SCORED)
def test_every_reference_earns_1_through_the_tools(category: str) -> None:
    rewards = []
    for one in items_of(category).values():
        environment = BFCLEnvironment()
        environment.reset(id=one.id)
        for turn in one.reference:
            for call in turn:
                environment.call(call.function, named_arguments(one, call))
            environment.next_request()
        rewards.append(environment.reward)
    assert rewards == [1.0] * 200


@needs_package
def test_calling_a_function_in_the_turn_in_which_it_is_missing_costs_that_turns_credit() -> None:
    """multi_turn_miss_func_0 has five turns, the third without reference calls: 1 of 5 for leaving it alone."""
    rewards = []
    for calls in (0, 1):
        environment = BFCLEnvironment()
        environment.reset(id="multi_turn_miss_func_0")
        environment.next_request()
        environment.next_request()
        for _ in range(calls):
            environment.call("sort", {"file_name": "final_report.pdf"})
        rewards.append(environment.reward)
    assert rewards == [1 / 5, 0.0]


@needs_package
def test_a_partial_trajectory_by_hand() -> None:
    """multi_turn_base_0 has four turns. The first's reference: cd, mkdir, mv. With cd and mkdir alone the state differs
    and one of three answers is missing: 0.5 * 0 + 0.5 * 2/3 = 1/3. In the second, which changes nothing, cd temp and a
    grep that finds no file: the answer of cd and not of grep, and the state still differs: 0.5 * 1/2 = 1/4. In the
    third nothing is called: 0. The fourth is never reached: 0. (1/3 + 1/4) / 4 = 7/48."""
    environment = BFCLEnvironment()
    environment.reset(id="multi_turn_base_0")
    environment.call("cd", {"folder": "document"})
    environment.call("mkdir", '{"dir_name": "temp"}')  # type: ignore[arg-type] # as many models write it
    environment.next_request()
    environment.call("cd", {"folder": "temp"})
    environment.call("grep", {"file_name": "final_report.pdf", "pattern": "budget analysis"})
    environment.next_request()
    assert environment.turns_reached == 3
    assert environment.reward == pytest.approx(7 / 48)


JUNK: dict[str, tuple[str, dict[str, Any]]] = {
    "GorillaFileSystem": ("cat", {"file_name": "nowhere.txt"}),
    "MathAPI": ("logarithm", {"value": -1.0, "base": 2.0, "precision": 5}),
    "MessageAPI": ("get_user_id", {"user": "nobody"}),
    "TicketAPI": ("get_ticket", {"ticket_id": -5}),
    "TradingBot": ("get_stock_info", {"symbol": "NOPE"}),
    "TravelAPI": (
        "get_flight_cost",
        dict.fromkeys(("travel_from", "travel_to", "travel_date", "travel_class"), "x"),
    ),
    "TwitterAPI": ("get_tweet", {"tweet_id": -5}),
    "VehicleControlAPI": ("lockDoors", {"nonsense": 1}),
}
"""For each service a call that it answers with an error, or refuses."""


def earned(one: Item, function: str | None, arguments: dict[str, Any]) -> float | None:
    """The reward of one call a turn, or of none."""
    environment = BFCLEnvironment()
    environment.reset(id=one.id)
    for _ in one.reference:
        with contextlib.suppress(ToolError):
            if function is not None:
                environment.call(function, arguments)
        environment.next_request()
    return environment.reward


@needs_package
@pytest.mark.parametrize("category", SCORED)
def test_junk_calls_earn_no_more_than_none(category: str) -> None:
    """An unknown function, wrong arguments, and calls that a service answers with an error, in every item's turns."""
    for one in items_of(category).values():
        nothing = earned(one, None, {})
        known = next(call.function for turn in one.reference for call in turn)
        for function, arguments in [("no_such_function", {}), (known, {"nonsense": 1}), *map(JUNK.get, one.apis)]:  # type: ignore[misc]
            assert earned(one, function, arguments) <= nothing, (one.id, function)  # type: ignore[operator]


@needs_package
def test_an_answer_that_is_an_error_is_no_call() -> None:
    environment = BFCLEnvironment()
    environment.reset(id="multi_turn_base_0")
    assert '"error"' in environment.call("cat", {"file_name": "nowhere.txt"})
    environment.next_request()
    assert environment._credits == [0.0]


@needs_package
def test_the_state_earns_only_where_the_reference_changes_it() -> None:
    """multi_turn_base_0: the first and the last turn move files; the second and third look something up, or sort.

    A call that works and changes nothing (`pwd`) has the right state in the second turn, and none of its two answers:
    0 of it. The reference's cd is one of two answers: 1/2 of it, and 1/4 where the state is wrong.
    """
    assert changing_turns("multi_turn_base_0") == (True, False, False, True)
    one = item("multi_turn_base_0")
    credits = []
    for first, calls in [
        (one.reference[0], [("pwd", {})]),
        (one.reference[0], [("cd", {"folder": "temp"})]),
        (one.reference[0][:2], [("cd", {"folder": "temp"})]),
    ]:
        environment = BFCLEnvironment()
        environment.reset(id=one.id)
        for call in first:
            environment.call(call.function, named_arguments(one, call))
        environment.next_request()
        for function, arguments in calls:
            environment.call(function, arguments)
        environment.next_request()
        credits.append(environment._credits[1])
    assert credits == [0.0, 0.5, 0.25]


@needs_package
def test_doing_nothing_is_right_where_nothing_can_be_done() -> None:
    one = item("multi_turn_miss_param_0")
    environment = BFCLEnvironment()
    environment.reset(id=one.id)
    for _ in one.reference:
        environment.next_request()
    assert environment.reward == sum(not turn for turn in one.reference) / len(one.reference) > 0


@needs_package
@pytest.mark.parametrize("category", SCORED)
def test_the_reward_is_1_exactly_where_the_packages_checker_is_content(category: str) -> None:
    """References as they are, with their last call left out, and with a call made where none should be."""
    from bfcl_eval.eval_checker.multi_turn_eval import multi_turn_checker as checker

    seen = set()
    for one in list(items_of(category).values())[:40]:
        for number, played in enumerate(variants(one)):
            environment = BFCLEnvironment()
            environment.reset(id=one.id)
            for turn in played:
                for call in turn:
                    environment.call(call.function, named_arguments(one, call))
                environment.next_request()
            decoded = [[[text(one, call) for call in turn]] if turn else [] for turn in played]
            truth = [[text(one, call) for call in turn] for turn in one.reference]
            entry = {"initial_config": one.config, "involved_classes": list(one.apis), "id": one.id}
            verdict = checker.multi_turn_checker(decoded, truth, entry, category, f"t{number}")["valid"]
            verdict = verdict and checker.multi_turn_irrelevance_checker(decoded, truth)["valid"]
            assert (environment.reward == 1.0) is verdict, (one.id, number)
            seen.add(verdict)
    assert seen == {True, False}


def variants(one: Item) -> list[list[tuple[Call, ...]]]:
    whole = list(one.reference)
    last = max(at for at, turn in enumerate(whole) if turn)
    shorter = [turn[:-1] if at == last else turn for at, turn in enumerate(whole)]
    first = next(call for turn in whole for call in turn)
    busy = [turn or (first,) for turn in whole]
    return [whole, shorter, busy]


def text(one: Item, call: Call) -> str:
    return f"{call.function}({', '.join(f'{k}={v!r}' for k, v in named_arguments(one, call).items())})"


@needs_package
def test_no_call_reaches_anything_but_the_documented_functions() -> None:
    services = Services(item("multi_turn_base_0"))
    for name in ("__init__", "_load_scenario", "__class__", "os.system", "eval", "", None, 3):
        with pytest.raises(ToolError, match="there is no function"):
            services.run(name, {})


@needs_package
def test_numeric_contexts_are_left_alone() -> None:
    mpmath = pytest.importorskip("mpmath")
    one = next(one for one in items_of("base").values() if "MathAPI" in one.apis)
    before = (decimal.getcontext().prec, mpmath.mp.dps)
    services = Services(one)
    services.run("square_root", {"number": 2.0, "precision": 3})
    services.run("logarithm", {"value": 2.0, "base": 10.0, "precision": 3})
    assert (decimal.getcontext().prec, mpmath.mp.dps) == before
    with pytest.raises(ToolError, match="precision must be a number within 1000"):
        services.run("logarithm", {"value": 2.0, "base": 10.0, "precision": 10**9})


@needs_package
def test_references_make_demonstrations() -> None:
    row = BFCL().train_records(1, 0)[0]
    messages = reference_messages(row)
    roles = [message["role"] for message in messages]
    assert set(itertools.pairwise(roles)) == {("assistant", "tool"), ("tool", "assistant")}
    assert BFCL().demonstrations(1, 0) == [{"prompt": row["prompt"], "completion": messages}]
    with pytest.raises(ConfigError, match="accuracy"):
        BFCL().demonstrations(1, 0, accuracy=0.5)
