"""The papers' data sets: rows in the form of the hub become prompts, answers, ids and categories."""

import base64
import json
import pickle
import zlib
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset

from rollwise.answers import boxed_answer
from rollwise.errors import ConfigError, MissingColumnError, PoolError
from rollwise.sampling.config import DataConfig
from rollwise.sampling.data import PromptData, load_data
from rollwise.sampling.own_task import OwnTask
from rollwise.sampling.scorers.builtin import boxed, hendrycks, math
from rollwise.sampling.setting import make_scorer
from rollwise.sampling.suites.known import SUITES
from rollwise.training.config import TrainConfig

PRIVATE = base64.b64encode(
    zlib.compress(pickle.dumps(json.dumps([{"input": "2", "output": "4", "testtype": "stdin"}])))
)
CASES = [{"input": "1", "output": "2"}]
CONTEST: dict[str, Any] = {
    "source": "Codeforces",
    "id": "1_A",
    "title": "Double",
    "description": "Print twice the number.",
    "time_limit": 2000,
    "memory_limit": 256,
    "test_cases": CASES,
    "correct_submissions": [{"code": "print(2*int(input()))", "language": "py3"}],
    "incorrect_submissions": [],
}
ROWS: dict[str, dict[str, Any]] = {
    "aime24": {"ID": "2024-I-4", "Problem": "Find x.", "Solution": "It is 33.", "Answer": 33},
    "aime25": {"problem": "Find x.", "answer": "70", "id": "0"},
    "amc": {"id": 0, "problem": "Find m+n.", "answer": 142.0, "url": "wiki/2022_AMC_12A_Problems/Problem_1"},
    "math500": {
        "problem": "Find x.",
        "solution": "So \\boxed{1}.",
        "answer": "\\frac{1}{2}",
        "subject": "Algebra",
        "level": 2,
        "unique_id": "test/algebra/1.json",
    },
    "minerva": {
        "type": "Introduction to Astronomy",
        "idx": 0,
        "problem": "How far?",
        "solution": "First \\boxed{1}, then \\boxed{\\frac{3}{4} \\mathrm{~pc}}; \\boxed{cut",
    },
    "math-train": {"problem": "Find x.", "level": "Level 3", "type": "Algebra", "solution": "\\boxed{\\{1,2\\}}"},
    "dapo": {
        "prompt": "Find x.",
        "solution": "34",
        "data_source": "math_dapo",
        "source_prompt": [{"role": "user", "content": "Solve. Find x."}],
        "ability": "MATH",
        "reward_model": {"ground_truth": "34", "style": "rule"},
        "extra_info": {"index": "a"},
    },
    "guru-math": {
        "data_source": "math__merged_deduped",
        "prompt": [{"role": "user", "content": "Find x. Please output the final answer within \\boxed{}."}],
        "ability": "math",
        "reward_model": {"ground_truth": "7", "style": "rule"},
        "qwen2.5_7b_pass_rate": 0.25,
        "qwen3_30b_pass_rate": 0.75,
        "extra_info": {"index": 0},
    },
    "codecontests-plus": CONTEST,
    "livecodebench": {
        "question_title": "Double",
        "question_content": "Print twice the number.",
        "platform": "codeforces",
        "question_id": "1_A",
        "contest_id": "1",
        "contest_date": "2024-01-01T00:00:00",
        "starter_code": "",
        "difficulty": "easy",
        "public_test_cases": json.dumps([{**CASES[0], "testtype": "stdin"}]),
        "private_test_cases": PRIVATE.decode(),
        "metadata": "{}",
    },
    "humaneval": {
        "task_id": "HumanEval/0",
        "prompt": "def double(x):\n",
        "canonical_solution": "    return 2 * x\n",
        "test": "def check(candidate):\n    assert candidate(1) == 2\n",
        "entry_point": "double",
    },
    "mbpp": {
        "task_id": 601,
        "text": "Write a function that doubles.",
        "code": "def double(x): return 2 * x",
        "test_list": ["assert double(1) == 2", "assert double(2) == 4"],
        "test_setup_code": "",
        "challenge_test_list": [],
    },
    "bigcodebench": {
        "task_id": "BigCodeBench/0",
        "complete_prompt": "def task_func():\n",
        "instruct_prompt": "Write it.",
        "test": "class TestCases(unittest.TestCase): ...",
        "entry_point": "task_func",
    },
    "zebra": {"question": "Who? Provide only the name of the person as your final answer.", "answer": "alice"},
    "arc-1d": {"question": "Find. Your final answer should be just the grid.\n0 1", "answer": "1 0", "metadata": {}},
}
PARTS: dict[str, tuple[str, str, str | None, str | None]] = {
    "aime24": ("Find x.", "33", "2024-I-4", None),
    "aime25": ("Find x.", "70", "0", None),
    "amc": ("Find m+n.", "142", "0", None),
    "math500": ("Find x.", "\\frac{1}{2}", "test/algebra/1.json", "2"),
    "minerva": ("How far?", "\\frac{3}{4} \\mathrm{~pc}", None, "Introduction to Astronomy"),
    "math-train": ("Find x.", "\\{1,2\\}", None, "Level 3"),
    "dapo": ("Find x.", "34", None, None),
    "guru-math": ("Find x.\n", "7", None, None),
    "codecontests-plus": ("Print twice", '{"cases": [["1", "2"]], "kind": "stdin"}', "1_A", None),
    "livecodebench": ("Print twice", '{"cases": [["1", "2"], ["2", "4"]], "kind": "stdin"}', "1_A", "easy"),
    "humaneval": ("def double", '"function": "double", "kind": "check"', "HumanEval/0", None),
    "mbpp": ("Your code must pass: assert double(1) == 2", '"kind": "asserts"', "601", None),
    "bigcodebench": ("def task_func", '"kind": "unittest"', "BigCodeBench/0", None),
    "zebra": ("answer and put it in \\boxed{}, for example: \\boxed{Alice}.", "alice", None, None),
    "arc-1d": ("must be placed in \\boxed{} and should be just the grid.", "1 0", None, None),
}


PAGE = Path(__file__).parents[2] / "docs/howto/presets.md"
BEGIN, END = "<!-- table -->\n", "<!-- end of the table -->"


def table() -> str:
    lines = ["| preset | what | rows | on the hub | revision | reward |", "|---|---|--:|---|---|---|"]
    for name, suite in SUITES.items():
        rows = "" if suite.rows is None else f"{suite.rows:,}"
        hub, revision = (f"`{suite.hub}`", f"`{suite.revision[:7]}`") if suite.hub else ("", "")
        lines.append(f"| `{name}` | {suite.about} | {rows} | {hub} | {revision} | `{suite.reward}` |")
    return "\n".join(lines) + "\n"


def copied(path: Path, *rows: dict[str, Any]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def load(source: str, **options: Any) -> PromptData:
    return load_data(DataConfig(data=source, model="m", **options), None)


@pytest.mark.parametrize("name", SUITES)
def test_a_row_of_the_hub(name: str, tmp_path: Path) -> None:
    data = load(f"preset:{name}={copied(tmp_path / 'a.jsonl', ROWS[name])}")
    prompt, answer, id_, category = PARTS[name]
    row = data.rows[0]
    assert prompt in row["prompt"]
    begin, end = SUITES[name].template.replace("{{}}", "{}").split("{prompt}")
    assert row["prompt"].startswith(begin)
    assert row["prompt"].endswith(end)
    assert answer in row["answer"]
    assert data.ids[0] == (f"{name}:{id_}" if id_ else data.ids[0])
    assert data.categories == (None if category is None else [category])
    data.pool()  # a pool can hold it


def test_a_category_that_a_preset_lacks_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Its own took the place of a misspelt one without a word."""
    source = f"preset:math500={copied(tmp_path / 'a.jsonl', ROWS['math500'])}"
    assert load(source, category="subject").categories == [ROWS["math500"]["subject"]]
    assert "has no column" not in caplog.text
    assert load(source, category="subjcet").categories == load(source).categories
    assert "a.jsonl has no column 'subjcet' (--category); its own categories are taken" in caplog.text


def test_all_suites_have_a_row_here() -> None:
    assert set(ROWS) == set(PARTS) == set(SUITES)
    assert all(len(suite.revision) == 40 or suite.revision == "main" for suite in SUITES.values())


def test_the_page_has_all_presets() -> None:
    assert PAGE.read_text().split(BEGIN)[1].split(END)[0] == table(), "run this file to write it"


def test_programs_of_all_suites_have_their_tests_in_one_form(tmp_path: Path) -> None:
    for name, suite in SUITES.items():
        if suite.reward == "code":
            row = load(f"preset:{name}={copied(tmp_path / 'a.jsonl', ROWS[name])}").rows[0]
            assert json.loads(row["answer"])["kind"] in ("stdin", "check", "asserts", "unittest")
            assert not {"test", "private_test_cases", "correct_submissions"} & set(row)


@pytest.mark.parametrize("name", ["dapo", "math-train", "codecontests-plus"])
def test_what_metis_trains_on_has_the_problem_as_its_judge_reads_it(name: str, tmp_path: Path) -> None:
    """METIS, appendices A.2 and B.3: the problem alone; with the prompt the judge was told to box the answer too."""
    row = load(f"preset:{name}={copied(tmp_path / 'a.jsonl', ROWS[name])}").rows[0]
    assert row["prose"] in row["prompt"]
    assert SUITES[name].template.format(prompt="").strip() not in row["prose"]


def test_the_filters_of_code_contests(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    rows = [
        CONTEST,
        {**CONTEST, "id": "no-python", "correct_submissions": [{"code": "", "language": "cpp"}]},
        {**CONTEST, "id": "26-tests", "test_cases": CASES * 26},
        {**CONTEST, "id": "25-tests", "test_cases": CASES * 25},
        {**CONTEST, "id": "no-tests", "test_cases": []},
        {**CONTEST, "id": "image", "description": 'See <img src="a.png">.'},
        {**CONTEST, "id": "figure", "description": "The tree is shown in the figure below."},
        {**CONTEST, "id": "figures", "description": "Find the number of figures in the text."},
    ]
    with caplog.at_level("INFO", logger="rollwise"):
        data = load(f"preset:codecontests-plus={copied(tmp_path / 'a.jsonl', *rows)}")
    assert [id_.partition(":")[2] for id_ in data.ids] == ["1_A", "25-tests", "figures"]
    assert "1 of 8 rows left out: no correct Python program" in caplog.text


@pytest.mark.parametrize(
    ("wrong", "where", "reason"),
    [
        ({"description": " "}, None, "row 3: the prompt is empty"),
        ({"description": " "}, "id == codecontests-plus:3", "row 3: the prompt is empty"),
        ({"test_cases": [{"input": "1"}]}, None, "row 3 has another form than ByteDance-Seed/Code-Contests-Plus"),
        ({"correct_submissions": None}, None, "row 3 has another form than"),  # a filter's traceback
    ],
)
def test_a_row_of_a_preset_is_named_by_its_place_in_the_copy(
    wrong: dict[str, Any], where: str | None, reason: str, tmp_path: Path
) -> None:
    """It was counted among those that the filters and conditions had left."""
    left_out = {**CONTEST, "id": "1", "test_cases": []}
    source = copied(tmp_path / "a.jsonl", left_out, {**CONTEST, "id": "2"}, {**CONTEST, "id": "3", **wrong})
    with pytest.raises(PoolError) as caught:
        load(f"preset:codecontests-plus={source}", where=where)
    assert reason in str(caught.value)


def test_guru_has_two_reference_rates_and_is_filtered_and_stratified_as_in_prioritized_replay(tmp_path: Path) -> None:
    rows = [
        {
            **ROWS["guru-math"],
            "prompt": [{"role": "user", "content": f"{i}?"}],
            "qwen2.5_7b_pass_rate": i % 4 / 4,
            "qwen3_30b_pass_rate": i / 40,
        }
        for i in range(40)
    ]
    source = f"preset:guru-math={copied(tmp_path / 'a.jsonl', *rows)}"
    options = {"where": "qwen3_30b_pass_rate > 0.5", "limit": 8, "stratify": "qwen2.5_7b_pass_rate"}
    data = load(source, **options)
    assert sorted(row["qwen2.5_7b_pass_rate"] for row in data.rows) == [0, 0, 0.25, 0.25, 0.5, 0.5, 0.75, 0.75]
    assert data.pool().columns["reference_pass_rates"].shape == (8, 2)


def test_a_preset_is_held_out_whatever_the_columns_of_the_data_are_called(tmp_path: Path) -> None:
    own = copied(tmp_path / "own.jsonl", *({"q": f"{i}+1", "gold": str(i + 1), "uid": f"u{i}"} for i in range(4)))
    held_out = f"preset:math500={copied(tmp_path / 'a.jsonl', ROWS['math500'])}"
    named = {"prompt_column": "q", "answer_column": "gold", "id": "uid", "template": "boxed", "system": ""}
    config = TrainConfig(data=own, eval_data=held_out, reward="hendrycks", model="m", where="q != 0+1", **named)  # type: ignore[arg-type]
    task = OwnTask(config, verifier=None, eval_data=config.eval_data, evaluated=True)
    record = task.eval_records(9, 0)[0]
    assert (record["id"], record["answer"]) == ("math500:test/algebra/1.json", "\\frac{1}{2}")
    assert record["prompt"][-1]["content"].startswith("Find x.\nPlease reason step by step")
    assert len(task.data) == 3


def test_presets_and_files_are_mixed(tmp_path: Path) -> None:
    own = copied(tmp_path / "own.jsonl", {"prompt": "1+1", "answer": "2"})
    sources = [own, *(f"preset:{name}={copied(tmp_path / f'{name}.jsonl', ROWS[name])}" for name in ("aime24", "amc"))]
    data = load_data(DataConfig(data=sources, model="m", reward="math"), None)
    assert [row["answer"] for row in data.rows] == ["2", "33", "142"]
    assert DataConfig(data=sources[1:], model="m").reward == "math"


def test_a_preset_brings_its_reward_and_the_run_is_named_after_it(tmp_path: Path) -> None:
    source = f"preset:zebra={copied(tmp_path / 'a.jsonl', ROWS['zebra'])}"
    config = TrainConfig(data=source, model="m")
    assert (config.reward, config.stem) == ("boxed", "zebra")
    assert TrainConfig(data=source, model="m", reward="exact").reward == "exact"


@pytest.mark.parametrize(
    ("source", "error", "reason"),
    [
        ("preset:aime26", ConfigError, "unknown preset 'aime26' (did you mean 'aime25'?); known are aime24, "),
        (
            "preset:zebra",
            ConfigError,
            "no data set on the hub: zebra puzzles of reasoning-gym (SEC); give a file: preset:zebra=FILE",
        ),
        ("preset:aime24={file}", MissingColumnError, "needs the column 'problem' or 'question' or 'Problem', but"),
        ("preset:humaneval={file}", MissingColumnError, "needs the column 'task_id'"),
        ("preset:aime24=none.jsonl", ConfigError, "'none.jsonl' does not exist"),
        ("preset:livecodebench={broken}", PoolError, "row 1 has another form than livecodebench/code_generation_lite"),
        ("preset:livecodebench={hostile}", PoolError, "private tests hold builtins.print"),
    ],
)
def test_presets_that_cannot_be_read(source: str, error: type[Exception], reason: str, tmp_path: Path) -> None:
    private = base64.b64encode(zlib.compress(pickle.dumps(print))).decode()
    files = {
        "file": copied(tmp_path / "a.jsonl", {"text": "1+1", "answer": "2"}),
        "broken": copied(tmp_path / "b.jsonl", {**ROWS["livecodebench"], "public_test_cases": "[{}]"}),
        "hostile": copied(tmp_path / "c.jsonl", {**ROWS["livecodebench"], "private_test_cases": private}),
    }
    with pytest.raises(error) as caught:
        load(source.format(**files))
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["aime25", "livecodebench"])
def test_without_a_network_one_line_names_the_copy(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("datasets.config.HF_HUB_OFFLINE", True)
    hub = SUITES[name].hub
    with pytest.raises(
        ConfigError, match=rf"^preset '{name}', {hub} at revision .*is there a network.* preset:{name}=FILE$"
    ):
        load(f"preset:{name}")


def test_the_cache_of_the_hub_is_read_without_a_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    suite = SUITES["livecodebench"]
    folder = tmp_path / f"datasets--{suite.hub.replace('/', '--')}" / "snapshots" / suite.revision
    folder.mkdir(parents=True)
    for i, file in enumerate(suite.files):
        copied(folder / file, {**ROWS["livecodebench"], "question_id": str(i), "question_content": f"{i}?"})
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    assert load("preset:livecodebench").ids == [f"livecodebench:{i}" for i in range(6)]


def test_a_folder_of_datasets_is_a_copy_and_another_number_of_rows_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    Dataset.from_list([ROWS["math500"]]).save_to_disk(str(tmp_path / "copy"))
    assert len(load(f"preset:math500={tmp_path / 'copy'}")) == 1
    assert "has 1 rows, and HuggingFaceH4/MATH-500 has 500" in caplog.text


def test_programs_run_in_a_sandbox_and_are_refused_where_none_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = f"preset:humaneval={copied(tmp_path / 'a.jsonl', ROWS['humaneval'])}"
    monkeypatch.setattr("rollwise.sandbox.probe._reason", lambda: "")
    assert make_scorer(DataConfig(data=source, model="m"), None)[0].name == "reward 'code'"
    monkeypatch.setattr("rollwise.sandbox.probe._reason", lambda: "bubblewrap (bwrap) is not installed")
    with pytest.raises(ConfigError, match=r"untrusted code runs only in a sandbox.* bubblewrap \(bwrap\) is not"):
        make_scorer(DataConfig(data=source, model="m"), None)
    with pytest.raises(ConfigError, match=r"'humaneval' asks for programs, which reward 'math' can't score; give --r"):
        load(source, reward="math")
    with pytest.raises(ConfigError, match=r"scored by 'math' \(aime24\) and 'code' \(mbpp\); give --reward"):
        DataConfig(data=["preset:aime24", "preset:mbpp"], model="m")
    assert load(source, reward="mine.py:runs").ids == ["humaneval:HumanEval/0"]


def test_sec_prompts(tmp_path: Path) -> None:
    source = f"preset:math500={copied(tmp_path / 'a.jsonl', ROWS['math500'])}"
    prompt = load(source, template="sec-math").prompts[0]
    assert prompt.startswith("A conversation between User and Assistant.")
    assert prompt.endswith(
        "User: Find x. Put your final answer within \\boxed{}.\nAssistant: Let me solve this step by step."
    )


# ---- the scorers ----


def test_the_last_balanced_box() -> None:
    assert boxed_answer(r"\boxed{\frac{a}{b}} or \boxed{c") == r"\frac{a}{b}"
    assert boxed_answer(r"\boxed{\{1, 2\}}") == r"\{1, 2\}"
    assert boxed_answer(r"\boxed{\left\{ x \right.} end") == r"\left\{ x \right."
    assert boxed_answer(r"\fbox {3} {") == "3"
    assert boxed_answer(r"\boxed{\boxed{3}}") == "3"
    assert boxed_answer(r"boxed{3}") is None
    assert boxed_answer(r"\boxed{ }") is None
    assert boxed_answer("\\boxed{" * 200_000) is None  # in one pass


@pytest.mark.parametrize(
    ("gold", "answer", "by_hendrycks", "by_maths"),
    [
        (r"\frac{1}{2}", r"\dfrac12", True, True),
        (r"\frac{1}{2}", "0.5", True, True),
        (r"\frac{3}{4}", "3/4", True, True),
        (r"\frac{3}{4}", "0.75", False, True),
        ("10", r"10\text{ cm}", True, True),
        ("10", r"x = 10", True, True),
        ("50", r"50\%", True, True),
        ("1000", r"\$1000", True, True),
        (r"90^\circ", "90", True, True),
        (r"\left( 3, \frac{\pi}{2} \right)", r"(3,\frac{\pi}{2})", True, True),
        (r"\sqrt{3}", r"\sqrt3", True, True),
        (r"x^2+1", "1+x^2", False, True),
        ("4", "5", False, False),
    ],
)
def test_hendrycks_beside_math_verify(gold: str, answer: str, by_hendrycks: bool, by_maths: bool) -> None:
    text = [f"so \\boxed{{{answer}}}."]
    assert hendrycks(text, answer=[gold]) == [float(by_hendrycks)]
    assert math(text, answer=[gold]) == [float(by_maths)]


def test_secs_reward() -> None:
    assert boxed(["\\boxed{Alice}", "\\boxed{bob}", "Alice", "\\boxed{x}"], answer=["alice"] * 3 + [None]) == [
        1,
        0.1,
        0,
        None,
    ]


if __name__ == "__main__":
    before, rest = PAGE.read_text().split(BEGIN)
    PAGE.write_text(before + BEGIN + table() + END + rest.split(END)[1])
