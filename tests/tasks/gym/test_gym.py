"""reasoning-gym: items by seed, levels, the split, scorers here and in the sandbox, the cache."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from rollwise.errors import ConfigError, MissingExtraError, TaskError
from rollwise.sandbox import check_sandbox
from rollwise.tasks import Task, make_task
from rollwise.tasks.gym import generators, items
from rollwise.tasks.gym.items import Items
from rollwise.tasks.gym.scoring import Said, _checked, scores
from rollwise.tasks.gym.task import ReasoningGym

pytest.importorskip("reasoning_gym", reason="reasoning-gym is not installed")

TWO = {"countdown": {"min_numbers": 2, "max_numbers": 2}}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ROLLWISE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def rewards(task: Task, record: dict[str, Any], said: list[Any]) -> list[float]:
    columns = {key: [value] * len(said) for key, value in record.items() if key not in ("id", "prompt")}
    return task.reward([record["prompt"]] * len(said), said, **columns)


def skip_without_sandbox() -> None:
    try:
        check_sandbox()
    except ConfigError as error:
        pytest.skip(str(error))


def test_a_mixture_by_weights_and_levels() -> None:
    names = ("letter_counting", "gcd", "chain_sum")
    task = ReasoningGym(dataset=names, weights=(2, 1, 1), levels=(0, 1), eval_levels=(2,))
    records = task.train_records(80, seed=0)
    assert Counter(record["category"] for record in records) == {
        **{f"letter_counting/L{level}": 20 for level in (0, 1)},
        **{f"{name}/L{level}": 10 for name in names[1:] for level in (0, 1)},
    }
    assert {record["category"] for record in task.eval_sets(4, seed=0)["ood"]} == {f"{name}/L2" for name in names}
    assert len(task.eval_sets(6, seed=0)["id"]) == 6
    terms = [record["prompt"].rpartition("problem: ")[2].count(" ") for record in records if "chain" in record["id"]]
    assert max(terms) > min(terms)


def test_items_are_seeded_one_by_one_and_held_out_by_content() -> None:
    task = ReasoningGym(dataset="letter_counting", shots=1)
    train = [task.train_records(120, seed) for seed in (0, 1)]
    assert task.train_records(30, seed=0) == train[0][:30]
    assert len({record["prompt"] for record in train[0]}) == 120
    # the package's data sets of seeds 0 and 1 would share 119 of 120
    assert len({r["prompt"] for r in train[0]} & {r["prompt"] for r in train[1]}) < 12
    held_out = {record["prompt"] for seed in (0, 1) for record in task.eval_records(40, seed)}
    assert not held_out & {record["prompt"] for records in train for record in records}


def test_an_item_is_that_of_the_package_whether_its_generator_can_be_reseeded_or_not() -> None:
    for name, reseeds in (("gcd", True), ("acre", False)):
        made = Items(name, {})
        assert made._reseeds is reseeds
        entry = generators.generator(name, {}, 77)[0]
        assert (made[77].question, made[77].answer) == (entry["question"], entry["answer"])


@pytest.mark.parametrize(
    ("style", "right", "wrong", "malformed"),
    [
        ("line", " {}\n\nQuestion: more", " no\n", "\n {}"),
        ("tags", "hm <answer>{}</answer>", "<answer>no</answer>", "{}"),
        ("chat", [{"role": "assistant", "content": "<answer>{}</answer>"}], "<answer>no</answer>", "<answer>{}"),
    ],
)
def test_answers_of_each_style(style: Any, right: Any, wrong: str, malformed: str) -> None:
    task = ReasoningGym(dataset="count_bits", style=style)
    record = task.train_records(1, seed=0)[0]
    answer = record["answer"]
    filled = [{**m, "content": m["content"].format(answer)} for m in right] if style == "chat" else right.format(answer)
    assert rewards(task, record, [filled, wrong, malformed.format(answer), ""]) == [1.0, 0.0, 0.0, 0.0]
    assert isinstance(record["prompt"], str) is (style != "chat")
    demos = task.demonstrations(20, seed=0, accuracy=1.0)
    assert rewards(task, record, [demos[0]["completion"]]) == [1.0]


def test_a_scorer_that_executes_its_answer_is_called_in_the_sandbox(tmp_path: Path) -> None:
    skip_without_sandbox()
    task = ReasoningGym(dataset="countdown", parameters=TWO, style="tags", shots=0)
    record = task.train_records(1, seed=0)[0]
    hostile = f"__import__('os').system('touch {tmp_path}/out')"
    said = [f"<answer>{text}</answer>" for text in (record["answer"], "1+1", hostile)]
    assert rewards(task, record, said) == [1.0, 0.05, 0.05]
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("complex_arithmetic", "nan"),
        ("number_sorting", "[NaN, NaN, NaN]"),
        ("number_sorting", '["nan", "nan", "nan"]'),
        ("simple_integration", "Integral({integrand}, {variable})"),
        ("simple_integration", "integrate({integrand}, {variable})"),
    ],
)
def test_what_the_packages_scorer_pays_for_without_an_answer_earns_nothing(name: str, said: str) -> None:
    parameters = {"min_numbers": 3, "max_numbers": 3} if name == "number_sorting" else {}
    entry = generators.generator(name, parameters, 1)[0]
    text = said.format(**entry["metadata"]) if "{" in said else said
    assert scores([Said(name, parameters, 1, str(entry["answer"]), text)]) == [0.0]


def test_without_a_sandbox_such_data_sets_are_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> None:
        raise ConfigError("there is none here")

    monkeypatch.setattr("rollwise.tasks.gym.scoring.check_sandbox", none)
    with pytest.raises(ConfigError, match="the scorers of countdown may execute a model's text: there is none here"):
        ReasoningGym(dataset=("gcd", "countdown"))
    monkeypatch.setattr(generators, "_READ_VERSION", "0.1.24")
    with pytest.raises(ConfigError, match="the scorers of gcd may execute"):
        ReasoningGym(dataset="gcd")


def test_a_score_out_of_range_counts_as_none() -> None:
    assert [_checked(value) for value in (0.5, 1, True, 1.5, -1, float("nan"), "1", None)] == [0.5, 1.0] + [0.0] * 6


def test_what_is_slow_to_make_is_made_once(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the item's seed, in a file that a kill in the middle of a line does not spoil."""
    monkeypatch.setattr(items, "SLOW", 0.0)
    parameters = {"num_people": 2, "num_characteristics": 2}
    first = [Items("zebra_puzzles", parameters)[seed] for seed in (1, 2)]
    (file,) = cache.rglob("*.jsonl")
    with file.open("a") as torn:
        torn.write('[3, "half')
    third = Items("zebra_puzzles", parameters)[3]
    monkeypatch.setattr(Items, "_make", lambda self, seed: pytest.fail("made again"))
    kept = Items("zebra_puzzles", parameters)
    assert [kept[1], kept[2], kept[3]] == [*first, third]
    assert len([*cache.rglob("*.jsonl")]) == 1
    monkeypatch.setenv("ROLLWISE_CACHE", str(file))
    with pytest.raises(ConfigError, match="set ROLLWISE_CACHE"):
        Items("zebra_puzzles", parameters)[1]


def test_secs_words_and_levels() -> None:
    """The packages' puzzles in SEC's conversation (appendix C), answered in a box; ARC-1D has rows of 10 to 40."""
    task = make_task("arc-1d", style="boxed")
    sets = task.eval_sets(3, seed=0)
    assert [len(record["answer"].split()) for record in sets["id"] + sets["ood"][:1]] == [10, 20, 30, 40]
    prompt = sets["id"][0]["prompt"]
    assert prompt.startswith("A conversation between User and Assistant.")
    assert "Your final answer must be placed in \\boxed{} and should be just the test output grid itself." in prompt
    zebra = make_task("zebra", style="boxed", levels=(1,), eval_levels=(1,))
    record = zebra.train_records(1, seed=0)[0]
    assert "There are 3 houses" in record["prompt"]
    assert "put in in \\boxed{}, for example: \\boxed{Alice}. Assistant:" in record["prompt"]
    assert zebra.reward([""], [f"so \\boxed{{{record['answer'].title()}}}"], answer=[record["answer"]]) == [1.0]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"dataset": "gdc"}, r"unknown data set of reasoning-gym 'gdc' \(did you mean 'gcd'\?\)"),
        ({"dataset": ()}, "dataset must be a text or one or more texts"),
        ({"dataset": ("gcd", "gcd")}, "each once"),
        ({"dataset": ("gcd", "lcm"), "weights": (1.0,)}, "one number for each of 2"),
        ({"dataset": "gcd", "levels": (9,)}, "'gcd' has levels 0 to 3, got 9"),
        ({"dataset": "gcd", "parameters": {"lcm": {}}}, "parameters has no option 'lcm'"),
        ({"dataset": "gcd", "parameters": {"gcd": {"lowest": 1}}}, "data set 'gcd' has no option 'lowest'"),
        ({"dataset": "gcd", "parameters": {"gcd": {"min_value": 0}}}, "reasoning-gym refuses these parameters"),
        (
            {"dataset": "time_intervals", "levels": (0,)},
            "in the parameters of 'time_intervals': .*; leave its levels out",
        ),
        ({"dataset": "word_ladder"}, "the items of 'word_ladder' change from process to process"),
        ({"dataset": "knight_swap"}, "the items of 'knight_swap' change from process to process"),
        ({"dataset": "puzzle24"}, "scorer of 'puzzle24' pays for any four numbers that make 24; take another data set"),
        ({"dataset": "game_of_life_halting"}, "pays for any answer"),
        ({"dataset": "intermediate_integration"}, "pays for the question as Integral"),
        ({"dataset": "coin_flip"}, "pays for 0, and for any other beginning of the right number"),
        ({"dataset": "gcd", "style": "lines"}, "style must be 'line', 'tags' or 'chat'"),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        ReasoningGym(**options)


def test_a_generator_without_answers_on_record_shows_none() -> None:
    """Its worked examples read "Answer: None"."""
    skip_without_sandbox()
    for work in (ReasoningGym(dataset="graph_color").train_records, ReasoningGym(dataset="graph_color").demonstrations):
        with pytest.raises(TaskError, match="data set 'graph_color' has no answers on record, .*; set shots to 0"):
            work(1, seed=0)
    task = ReasoningGym(dataset="graph_color", shots=0)
    assert task.train_records(2, seed=0)
    with pytest.raises(TaskError, match="has no answers on record"):
        task.demonstrations(1, seed=0)


def test_answers_of_several_lines_and_foreign_records_are_refused() -> None:
    task = ReasoningGym(dataset="rotate_matrix")
    with pytest.raises(TaskError, match="answers of 'rotate_matrix' have several lines; use style 'tags' or 'chat'"):
        task.train_records(1, seed=0)
    record = ReasoningGym(dataset="gcd").train_records(1, seed=0)[0]
    with pytest.raises(TaskError, match="a record of 'gcd' is scored by a task that has rotate_matrix"):
        rewards(task, record, [""])
    with pytest.raises(TaskError, match="needs the columns item_seed"):
        task.reward([""], [""], dataset=["gcd"], level=[-1], answer=["1"])


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "reasoning_gym", None)
    with pytest.raises((MissingExtraError, ValueError), match="reasoning"):
        ReasoningGym(dataset="gcd")
