"""A user's files, columns and rewards."""

import csv
import json
import re
import socket
import sys
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow
import pyarrow.parquet
import pytest
from datasets import Dataset, DatasetDict

from rollwise.errors import ConfigError, MissingColumnError, PoolError, RewardError, RollwiseError
from rollwise.sampling.config import DataConfig, SampleConfig
from rollwise.sampling.data import PromptData, load_data
from rollwise.sampling.own_task import OwnTask, task_of
from rollwise.sampling.prepared import prepare
from rollwise.sampling.rewards import choose_success, load_reward, reward_functions
from rollwise.sampling.scorers.builtin import exact, math, regex, unanswered
from rollwise.tasks import Reversal
from rollwise.tickets.outcome import RewardSpec
from rollwise.training.config import TrainConfig
from rollwise.training.parts import datasets_of

ROWS = [{"problem": f"{i}+{i}=", "answer": str(2 * i), "type": "sum" if i % 2 else "even"} for i in range(40)]


def jsonl(path: Path, rows: list[Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def load(data: Any, **options: Any) -> PromptData:
    listed = [str(one) for one in data] if isinstance(data, list) else str(data)
    return load_data(DataConfig(data=listed, reward="exact", **options), None)


def test_every_form_of_file_gives_the_same_rows(tmp_path: Path) -> None:
    jsonl(tmp_path / "a.jsonl", ROWS)
    (tmp_path / "a.json").write_text(json.dumps(ROWS))
    with open(tmp_path / "a.csv", "w", newline="", encoding="utf-8-sig") as file:  # with a byte order mark
        writer = csv.DictWriter(file, list(ROWS[0]))
        writer.writeheader()
        writer.writerows(ROWS)
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(ROWS), tmp_path / "a.parquet")
    Dataset.from_list(ROWS).save_to_disk(str(tmp_path / "folder"))
    jsonl(tmp_path / "first.jsonl", ROWS[:15])
    jsonl(tmp_path / "second.jsonl", ROWS[15:])
    sources = [tmp_path / name for name in ("a.jsonl", "a.json", "a.csv", "a.parquet", "folder")]
    found = [load(source, prompt_column="problem") for source in sources]
    found.append(load([tmp_path / "first.jsonl", tmp_path / "second.jsonl"], prompt_column="problem"))
    assert len({data.fingerprint() for data in found}) == 1
    assert found[0].rows[3] == {**ROWS[3], "prompt": "3+3="}


@pytest.mark.parametrize("form", ["torch", "numpy", "pandas"])
def test_a_folder_that_was_saved_with_a_format_gives_plain_values(form: str, tmp_path: Path) -> None:
    """A recorded answer was `tensor(4)`, so no answer was right."""
    rows = [{"id": n, "prompt": f"{n}+{n}=", "answer": 2 * n} for n in range(3)]
    Dataset.from_list(rows).with_format(form).save_to_disk(str(tmp_path / "folder"))
    assert load(tmp_path / "folder").rows == rows


def test_a_folder_of_several_splits_names_the_folder_of_one(tmp_path: Path) -> None:
    own = Dataset.from_list(ROWS)
    DatasetDict({"test": own, "validation": own}).save_to_disk(str(tmp_path / "folder"))
    with pytest.raises(ConfigError, match="splits test, validation; name one: (.*)$") as caught:
        load(tmp_path / "folder")
    assert load(str(caught.value).rpartition(": ")[2], prompt_column="problem").prompts[1] == "1+1="


def test_nested_columns_of_verl(tmp_path: Path) -> None:
    row = {
        "prompt": [{"role": "user", "content": "1+1="}],
        "reward_model": {"ground_truth": "2"},
        "extra_info": {"index": 7, "level": "easy", "question": "1+1"},
    }
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist([row]), tmp_path / "verl.parquet")
    paths = {"answer_column": "reward_model.ground_truth", "category": "extra_info.level", "id": "extra_info.index"}
    data = load(tmp_path / "verl.parquet", **paths)
    assert (data.rows[0]["answer"], data.categories, data.ids) == ("2", ["easy"], ["7"])
    assert data.prompts == [row["prompt"]]
    assert load(tmp_path / "verl.parquet", prompt_column="extra_info.question").prompts == ["1+1"]


def test_prompts_that_hold_their_answer_are_warned_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    turns = [[{"role": "user", "content": f"{i}+1="}, {"role": "assistant", "content": f"{i + 1}"}] for i in range(3)]
    load(jsonl(tmp_path / "asked.jsonl", [{"prompt": turn[:1]} for turn in turns]))
    assert not caplog.text
    load(jsonl(tmp_path / "tuned.jsonl", [{"messages": turn} for turn in turns]), prompt_column="messages")
    assert "3 of 3 prompts end with an assistant message" in caplog.text


def test_system_and_template(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "a.jsonl", ROWS[1:2])
    template = "{prompt} ({type}) Put it in \\boxed{{}}."
    data = load(path, prompt_column="problem", template=template, system="Be brief.")
    assert data.prompts == [
        [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "1+1= (sum) Put it in \\boxed{}."},
        ]
    ]
    assert load(path, prompt_column="problem", system="").prompts == [[{"role": "user", "content": "1+1="}]]
    with pytest.raises(MissingColumnError, match=r"row 1: template needs the column 'kind'"):
        load(path, prompt_column="problem", template="{kind}")
    with pytest.raises(ConfigError, match="unbalanced braces"):
        load(path, prompt_column="problem", template="{prompt")


@pytest.mark.parametrize(
    ("rows", "options", "error", "reason"),
    [
        (ROWS, {}, MissingColumnError, "no column 'prompt' (--prompt_column); it has problem, answer, type; "
                                       "--prompt_column problem names it"),
        (ROWS, {"prompt_column": "problm"}, MissingColumnError, "did you mean 'problem'?"),
        (ROWS, {"prompt_column": "extra.question"}, MissingColumnError, "no column 'extra.question'"),
        ([{"prompt": " "}], {}, PoolError, "row 1: the prompt is empty; write it, or remove the row"),
        ([{"prompt": "a"}, {"prompt": [{"role": "user", "content": "b"}]}], {}, PoolError,
         "row 1 has a prompt of text, and "),
        ([{"prompt": [{"role": "user", "content": "b"}]}], {"template": "{prompt}"}, ConfigError,
         "template is for prompts of text"),
        (ROWS, {"prompt_column": "problem", "template": ""}, PoolError, "row 1: the prompt is empty"),
        (ROWS, {"prompt_column": "problem", "template": "{problem:>9}"}, ConfigError, "formats the column 'problem'"),
        (ROWS, {"prompt_column": "problem", "template": "boxd"}, ConfigError,
         "template 'boxd' names no column in braces (did you mean 'boxed'?), so all prompts would be the same"),
        (ROWS, {"prompt_column": "problem", "template": "Put it in {{}}"}, ConfigError, "write {prompt} where"),
    ],
)  # fmt: skip
def test_columns_that_do_not_fit(
    rows: list[Any], options: dict[str, Any], error: type[RollwiseError], reason: str, tmp_path: Path
) -> None:
    with pytest.raises(error) as caught:
        load(jsonl(tmp_path / "a.jsonl", rows), **options)
    assert reason in str(caught.value)


def test_a_row_without_the_answer_that_is_named_has_none(tmp_path: Path) -> None:
    """It was scored by its other column `answer`."""
    rows = [{"prompt": "a", "gold": {"value": "1"}, "answer": "long"}, {"prompt": "b", "gold": {}, "answer": "long"}]
    data = load(jsonl(tmp_path / "a.jsonl", rows), answer_column="gold.value")
    assert [row["answer"] for row in data.rows] == ["1", None]


@pytest.mark.parametrize(
    ("line", "options", "said"),
    [
        (
            r'{"prompt": "Put it in \boxed{}.", "answer": "2"}',
            {},
            r"1 prompts or answers have a control character ('\x08oxed{}.",
        ),
        (r'{"prompt": "Half?", "answer": "\frac{1}{2}"}', {}, r"('\x0crac{1}{2')"),
        (r'{"prompt": "1+1=", "answer": "2"}', {"template": "{prompt} \boxed{{}}"}, r"('\x08oxed{}')"),
        (r'{"prompt": [{"role": "user", "content": "\boxed"}]}', {}, r"('\x08oxed')"),
        (r'{"prompt": "Put it in \\boxed{}.", "answer": "\\frac{1}{2}"}', {}, ""),
    ],
)
def test_a_single_backslash_that_became_a_control_character_is_said(
    line: str, options: dict[str, Any], said: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    r"""The help's own example, pasted into double quotes in YAML, asked for `oxed{}` without a word."""
    (tmp_path / "a.jsonl").write_text(line + "\n")
    load(tmp_path / "a.jsonl", **options)
    assert said in caplog.text
    assert bool(said) == ("write two backslashes there" in caplog.text)


def test_an_empty_value_is_nothing_in_a_template(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("prompt,hint\n2+2,\n3+3,carry\n")
    assert load(path, template="{prompt}={hint}").prompts == ["2+2=", "3+3=carry"]


def test_difficulties_of_a_csv_file_are_all_numbers_or_all_text(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("prompt,difficulty\na,1\nb,2\nc,hard\n")
    assert [row["difficulty"] for row in load(path).rows] == ["1", "2", "hard"]
    path.write_text("prompt,answer,answer\na,1,2\n")
    with pytest.raises(ConfigError, match="has two columns 'answer'; rename or remove one"):
        load(path)


def test_line_breaks_within_cells_of_a_csv_file(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b'prompt,answer\r\n"a\r\nb",1\r\n')
    assert load(tmp_path / "a.csv").rows == [{"prompt": "a\nb", "answer": "1"}]
    (tmp_path / "a.csv").write_bytes(b'prompt,answer\n"a\nb",1\n"c\nd",1,2\n')
    with pytest.raises(ConfigError, match="line 4 has more cells"):  # where the row begins
        load(tmp_path / "a.csv")


def test_prompts_that_are_all_the_same_are_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    load(jsonl(tmp_path / "a.jsonl", [{"prompt": "x", "answer": i} for i in range(3)]))
    assert "all 3 prompts are the same text" in caplog.text


@pytest.mark.parametrize("name", ["prompts", "completions"])
def test_a_column_with_a_name_that_rewards_need_is_left_out(
    name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The reward raised a TypeError: it was given two values by this name."""
    path = jsonl(tmp_path / "a.jsonl", [{"prompt": "1+1=", "answer": "2", name: ["3"]}])
    prepared = prepare(SampleConfig(data=str(path), reward="exact", model="m"), rollouts=2, batch_size=2)
    assert prepared.scorer(prepared.data.rows[0], ["2", "3"], [[1], [1]])[0] == [1.0, 0.0]
    assert f"column '{name}' is left out" in caplog.text
    assert load(jsonl(tmp_path / "b.jsonl", [{name: "1+1="}]), prompt_column=name).prompts == ["1+1="]


def test_without_a_network_data_that_are_not_cached_are_refused_at_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The hub's client printed eleven lines of retries, for 23 seconds."""
    import datasets
    import huggingface_hub

    monkeypatch.setattr(socket, "getaddrinfo", mock.Mock(side_effect=socket.gaierror(-2, "Name or service not known")))
    monkeypatch.setattr("rollwise.models.loading.getproxies", dict)
    monkeypatch.setattr(huggingface_hub, "is_offline_mode", lambda: False)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path)
    fetch = mock.Mock(side_effect=AssertionError("was asked for"))
    monkeypatch.setattr(datasets, "load_dataset", fetch)
    with pytest.raises(
        ConfigError, match=r"'org/some' can't be loaded from the hub .*not in the cache, and .* reached"
    ):
        load("org/some")
    fetch.assert_not_called()
    (tmp_path / "org___some").mkdir()
    with pytest.raises(ConfigError, match="was asked for"):
        load("org/some")


def test_a_hub_id_without_a_network() -> None:
    with pytest.raises(ConfigError, match=r"'no-one/no-data:train' can't be loaded from the hub .*is there a network"):
        load("no-one/no-data:train")


# ---- rewards ----


def test_built_in_rewards_by_hand() -> None:
    pytest.importorskip("math_verify")
    assert math(["\\boxed{\\frac{1}{2}}", "I think 0.5", "no"], answer=["0.5", "\\frac12", None]) == [1.0, 1.0, None]
    assert exact([[{"role": "assistant", "content": "so #### 1,000"}]], answer=["1000"]) == [1.0]
    assert math([r"\frac{1}{2}", "(3,4)", "(3,5)"], answer=[r"\frac{1}{2}", "(3,4)", "(3,4)"]) == [1.0, 1.0, 0.0]
    assert exact(["1, 2", "18 - 4 = 14"], answer=["1, 2", "18 - 4 = 14 #### 14"]) == [1.0, 1.0]
    assert regex("<b>")(["<b>", "b"]) == [1.0, 0.0]
    with pytest.raises(ConfigError, match="no regular expression"):
        regex("(")
    with pytest.raises(ConfigError, match="needs a pattern"):
        load_reward("regex")


def test_names_that_stand_for_rewards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_rewards_here.py").write_text("def digit(completions, **_):\n    return [1.0] * len(completions)\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    assert load_reward("own_rewards_here:digit")[0](completions=["a"]) == [1.0]  # in the working directory
    from trl.rewards import think_format_reward

    assert load_reward("think_format_reward")[0] is think_format_reward
    assert load_reward("trl.rewards:think_format_reward")[0] is think_format_reward
    with pytest.raises(ConfigError, match=r"unknown reward 'maths' \(did you mean 'math'\?\)"):
        load_reward("maths")


def rewards_file(folder: Path) -> Path:
    path = folder / "r.py"
    path.write_text(
        "async def accuracy(completions, answer, **_):\n"
        "    return [float(c == a) for c, a in zip(completions, answer)]\n"
        "def brevity(completions, **_):\n"
        "    return [-len(c) / 10 for c in completions]\n"
        "def first(completions, **_):\n"
        "    return [0.0]\n"
        "def broken(completions, **_):\n"
        "    return {}['x']\n"
        "def leaving(completions, **_):\n"
        "    raise SystemExit(2)\n"
    )
    return path


def test_several_rewards_and_the_one_that_says_what_is_solved(tmp_path: Path) -> None:
    path = rewards_file(tmp_path)
    names = [f"{path}:accuracy", f"{path}:brevity"]
    found = reward_functions(DataConfig(data="x.jsonl", reward=names, reward_weights=[1.0, 0.5]))
    assert (found.success, found.names) == (0, ["accuracy", "brevity"])
    assert "'accuracy' says what is solved, as its name says so" in found.why
    assert found.told(completions=["4", "444"], answer=["4", "4"]) == [1.0, 0.0]  # asynchronous
    summed = reward_functions(DataConfig(data="x.jsonl", reward=names, success="brevity"))
    assert summed.told(completions=["4", "444"], answer=["4", "4"]) == [-0.1, -0.3]
    with pytest.raises(ConfigError, match=r"got 'acuracy' \(did you mean 'accuracy'\?\)"):
        reward_functions(DataConfig(data="x.jsonl", reward=names, success="acuracy"))


@pytest.mark.parametrize(
    ("given", "highest"),
    [
        ({"reward_low": -1.0}, 1.0),
        ({"reward_low": 0.5}, 1.0),  # was 1.5, so that nothing was ever solved
        ({"reward_low": 2.0}, 3.0),
        ({"reward_low": 2.0, "solved_at": 4.0}, 4.0),
        ({"solved_at": 0.5}, 1.0),
    ],
)
def test_the_highest_reward_is_1_where_that_can_be(given: dict[str, float], highest: float) -> None:
    spec = DataConfig(data="x.jsonl", reward="exact", **given).reward_spec()
    assert spec is not None
    assert spec.high == highest


@pytest.mark.parametrize(
    ("names", "weights", "declared", "chosen"),
    [
        (["f"], [1.0], None, None),
        (["f"], [0.5], None, 0),  # half of 1 is solved
        (["f"], [2.0], None, 0),
        (["f"], [2.0], RewardSpec(0, 2), None),
        (["f"], [-1.0], None, None),  # less of it is better
        (["a", "b"], [1.0, -3.0], None, 0),
        (["format", "accuracy"], [1.0, 1.0], None, 1),
        (["a", "b"], [1.0, 3.0], None, 1),
        (["a", "b"], [1.0, 1.0], None, None),
        (["format", "accuracy"], [1.0, 1.0], RewardSpec(0, 2), None),  # the sum's range
        (["format", "accuracy"], [1.0, 1.0], RewardSpec(-1, 1), 1),
    ],
)
def test_which_reward_says_what_is_solved(
    names: list[str], weights: list[float], declared: RewardSpec | None, chosen: int | None
) -> None:
    assert choose_success(None, names, weights, declared)[0] == chosen


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("first", "must give a list of 2 rewards"),
        ("broken", "reward 'broken' raised KeyError('x')"),
        ("leaving", "reward 'leaving' raised SystemExit(2)"),
    ],
)
def test_functions_that_fail_are_named(name: str, reason: str, tmp_path: Path) -> None:
    found = reward_functions(DataConfig(data="x.jsonl", reward=f"{rewards_file(tmp_path)}:{name}"))
    with pytest.raises(RewardError) as caught:
        found.functions[0](completions=["a", "b"])
    assert reason in str(caught.value)
    if name != "first":
        assert re.search(r" in .*r\.py, line \d+; mend it$", str(caught.value))


# ---- as a task ----


def test_a_function_that_does_not_take_what_it_is_given_is_refused_with_the_remedy(tmp_path: Path) -> None:
    """Before a model is loaded: rewards are given every column, so without **columns its first call would fail."""
    path = jsonl(tmp_path / "a.jsonl", [{"problem": f"{i}?", "answer": "1", "source": "s"} for i in range(20)])
    (tmp_path / "r.py").write_text(
        "def closed(prompts, completions, answer):\n    return [1.0] * len(prompts)\n"
        "def whole(prompts, completions, completion_ids, problem, answer, source, id=None):\n    return [1.0]\n"
    )
    with pytest.raises(ConfigError, match=r"no parameter for 'completion_ids'.*end its parameters with \*\*columns"):
        own_task(path, reward=f"{tmp_path / 'r.py'}:closed")
    assert own_task(path, reward=f"{tmp_path / 'r.py'}:whole")


def own_task(path: Path, **options: Any) -> OwnTask:
    settings = {"verifier": None, "eval_data": None, "evaluated": True}
    settings |= {name: options.pop(name) for name in list(options) if name in settings}
    return OwnTask(DataConfig(data=str(path), prompt_column="problem", **options), **settings)


def test_a_fifth_is_held_out_by_a_hash(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "sums.jsonl", ROWS)
    task = own_task(path, reward="exact", category="type")
    train, held_out = task.train_records(100, 0), task.eval_records(100, 0)
    assert len(train) + len(held_out) == 40
    assert 0 < len(held_out) < 20
    assert not {row["id"] for row in train} & {row["id"] for row in held_out}
    shuffled = own_task(jsonl(tmp_path / "other.jsonl", ROWS[::-1]), reward="exact", category="type")
    assert {row["id"] for row in shuffled.eval_records(100, 0)} == {row["id"] for row in held_out}
    assert train[0]["category"] in ("sum", "even")
    assert len(own_task(path, reward="exact", evaluated=False).train_records(100, 0)) == 40
    other = jsonl(tmp_path / "held.jsonl", [{"problem": "9+9=", "answer": "18", "type": "x"}])
    task = own_task(path, reward="exact", eval_data=str(other))
    assert len(task.train_records(100, 0)) == 40
    assert [row["prompt"] for row in task.eval_records(5, 0)] == ["9+9="]


def test_prompts_that_are_trained_on_and_evaluated_are_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = jsonl(tmp_path / "sums.jsonl", ROWS)
    other = jsonl(tmp_path / "held.jsonl", [*ROWS[:3], {"problem": "99+99=", "answer": "198", "type": "new"}])
    own_task(path, reward="exact", eval_data={"id": str(other)})
    assert "3 of the 4 prompts of eval_data.id are trained on as well" in caplog.text
    caplog.clear()
    own_task(path, reward="exact")
    assert "trained on as well" not in caplog.text


@pytest.mark.parametrize("option", ["category", "id"])
@pytest.mark.parametrize(("name", "other"), [("answer", "solution"), ("prompt", "problem")])
def test_one_column_does_not_take_the_place_of_another(option: str, name: str, other: str) -> None:
    """`--category answer` beside `--answer_column solution`: rewards were given the category as the answer."""
    columns: dict[str, Any] = {"prompt_column": "problem", "answer_column": "solution", option: name}
    with pytest.raises(ConfigError, match=f"{option} can't be the column '{name}', whose place '{other}' takes"):
        DataConfig(data="a.jsonl", reward="exact", **columns)


def test_categories_that_are_the_answers_are_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = jsonl(tmp_path / "sums.jsonl", ROWS)
    own_task(path, reward="exact", category="type", answer_column="answer")
    assert "has the answers" not in caplog.text
    own_task(path, reward="exact", category="answer")
    own_task(path, reward="exact", category="type", answer_column="type")
    assert "column 'answer' has the answers and the categories, so prompts are chosen by their answers" in caplog.text
    assert "column 'type' has the answers and the categories" in caplog.text


def test_any_answer_of_a_list_is_right(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """As the aliases of TriviaQA; a list of several was no recorded answer, so that no rollout had a reward."""
    said = ["Roma", "It is Paris.\nThe answer is Rome", "Paris", r"\boxed{roma}"]
    assert exact(said, answer=[["Rome", "Roma"]] * 4) == [1.0, 1.0, 0.0, 1.0]
    assert math([r"\boxed{\frac12}", "2", "3"], answer=[["0.5", "2"]] * 3) == [1.0, 1.0, 0.0]
    assert exact(["Rome", "Rome"], answer=[["Rome"], []]) == [1.0, None]
    path = jsonl(tmp_path / "sums.jsonl", [{**row, "answer": [row["answer"], "none"]} for row in ROWS])
    own_task(path, reward="exact")
    assert "sums.jsonl': 40 of 40 prompts record a list of answers; any of them is right" in caplog.text
    assert "no recorded answer" not in caplog.text
    (tmp_path / "r.py").write_text("def length(completions, **_):\n    return [1.0] * len(completions)\n")
    caplog.clear()
    own_task(path, reward=f"{tmp_path / 'r.py'}:length")
    assert "list of answers" not in caplog.text


def test_prompts_without_a_recorded_answer_are_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = jsonl(
        tmp_path / "sums.jsonl", [{**row, "answer": None if i < 3 else row["answer"]} for i, row in enumerate(ROWS)]
    )
    for reward in ("exact", "regex:(.*)"):
        caplog.clear()
        own_task(path, reward=reward)
        assert "sums.jsonl': 3 of 40 prompts have no recorded answer, so they get no reward; leave" in caplog.text
    caplog.clear()
    own_task(path, reward="regex:.*")
    assert "no recorded answer" not in caplog.text
    assert unanswered(["code:all"], [{"answer": None}, {"answer": ""}, {"answer": '{"kind": "stdin"}'}]) == 2
    (tmp_path / "r.py").write_text("def length(completions, **_):\n    return [1.0] * len(completions)\n")
    own_task(path, reward=["exact", f"{tmp_path / 'r.py'}:length"])
    assert "no recorded answer" not in caplog.text


def test_data_are_read_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """What is held out was read from the file again, and its warnings said twice."""
    own_task(jsonl(tmp_path / "sums.jsonl", [*ROWS, ROWS[0]]), reward="exact")
    assert caplog.text.count("have the text of an earlier one") == 1


def test_solution_instead_of_answer(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "a.jsonl", [{"problem": f"{i}", "solution": f"#### {i}"} for i in range(40)])
    with pytest.raises(MissingColumnError, match="needs the column 'answer'.*--answer_column solution names it"):
        own_task(path, reward="exact")
    assert own_task(path, reward="exact", answer_column="solution").train_records(1, 0)[0]["answer"].startswith("####")


@pytest.mark.parametrize(
    ("value", "reason"),
    [(10**25, "write numbers beyond 64 bits as text"), ("\ud83d", "cut texts between characters")],
)
def test_a_column_that_no_table_can_hold_is_named(value: Any, reason: str, tmp_path: Path) -> None:
    path = jsonl(tmp_path / "a.jsonl", [{"prompt": str(i), "answer": value} for i in range(40)])
    config = TrainConfig(data=str(path), reward="exact", model="M")
    with pytest.raises(PoolError, match=f"column 'answer' of 'a' makes no table: .*; {reason}"):
        datasets_of(config, task_of(config))


def test_a_column_that_the_first_record_of_a_task_lacks_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    task = Reversal()
    records = task.train_records(3, 0)
    monkeypatch.setattr(task, "train_records", lambda n, seed: [records[0], {**records[1], "hint": "b"}, records[2]])
    train, _ = datasets_of(TrainConfig(task="reversal"), task)
    assert train["hint"][:] == [None, "b", None]


def test_a_row_is_named_by_its_place_in_its_own_file(tmp_path: Path) -> None:
    """It was counted among the rows of all files that a condition leaves."""
    first = jsonl(
        tmp_path / "a.jsonl", [{"prompt": "1=", "level": 1, "id": "x"}, {"prompt": "2=", "level": 2, "id": "y"}]
    )
    for row, reason in (
        ({"prompt": " "}, r"b.jsonl', row 2: the prompt is empty"),
        ({"prompt": "3=", "id": 1.5}, r"b.jsonl', row 2: an id must be text"),
        ({"prompt": "3=", "id": "y"}, r"id 'y' is in '.*a.jsonl', row 2 and in '.*b.jsonl', row 2 \(1 ids"),
        (
            {"prompt": [{"role": "user", "content": "3="}]},
            r"a.jsonl', row 2 has a prompt of text, .*b.jsonl', row 2 one of ",
        ),
        ({"prompt": "3=", "category": {}}, r"a.jsonl', row 2: column 'category' must hold text"),
    ):
        second = jsonl(tmp_path / "b.jsonl", [{"prompt": "4=", "level": 1}, {"level": 2, **row}])
        with pytest.raises(PoolError, match=reason):
            load([first, second], where="level == 2")


def test_nobody_scores(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="who scores the prompts of"):
        own_task(jsonl(tmp_path / "a.jsonl", ROWS))


def test_columns_of_several_kinds(tmp_path: Path) -> None:
    rows = [{"problem": str(i), "answer": i if i % 2 else str(i)} for i in range(40)]
    with pytest.raises(PoolError, match=r"column 'answer' holds values of several kinds \(number, str\)"):
        own_task(jsonl(tmp_path / "a.jsonl", rows), reward="exact").train_records(5, 0)
    named = [{"problem": str(i), "id": i if i % 2 else f"x{i}", "category": i if i % 2 else "x"} for i in range(40)]
    records = own_task(jsonl(tmp_path / "b.jsonl", named), reward="regex:1").train_records(99, 0)
    assert {type(record[name]) for record in records for name in ("id", "category")} == {str}
