"""BFCL: loaded from its own package, split, driven call by call, and rewarded as the package's checker would."""

from __future__ import annotations

import decimal
import itertools
from importlib import metadata
from typing import Any

import pytest

from rollwise.errors import ConfigError
from rollwise.tasks import BFCL, ToolError
from rollwise.tasks.bfcl import SCORED, named_arguments, reference_messages
from rollwise.tasks.bfcl_data import CATEGORIES, VERSION, Call, Item, item, items_of, package_folder, parse_call
from rollwise.tasks.bfcl_environment import BFCLEnvironment
from rollwise.tasks.bfcl_prompts import function_lines, request_text
from rollwise.tasks.bfcl_services import Services, answer_text, check_arguments


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
    and one of three answers is missing: 0.5 * 0 + 0.5 * 2/3 = 1/3. In the second, cd temp and a grep that finds no
    file: the answer of cd and not of grep, whose file is elsewhere, and the state differs: 0.5 * 1/2 = 1/4. In the
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
