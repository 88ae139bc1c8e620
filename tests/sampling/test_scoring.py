"""Rewards: whose, and what is wrong with them."""

import re
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from rollwise.errors import ConfigError, MissingColumnError, RewardError, TaskError
from rollwise.models.sampler import SamplingOptions
from rollwise.sampling.data import PromptData
from rollwise.sampling.folder import SampleFolder, sample_into
from rollwise.sampling.rewards import load_reward
from rollwise.sampling.scoring import Scorer, task_scorer
from rollwise.tasks import Reversal, make_task
from rollwise.tickets.outcome import RewardSpec

ROW = {"prompt": "1+1=", "answer": 2}


def scorer(function: Any, **spec: Any) -> Scorer:
    return Scorer(function, name="reward 'mine'", spec=RewardSpec(**spec))


def test_trls_signature() -> None:
    seen: dict[str, Any] = {}

    def reward(prompts: Any, completions: Any, answer: Any, **columns: Any) -> list[float | None]:
        seen.update(prompts=prompts, completions=completions, answer=answer, **columns)
        return [1.0, None]

    assert scorer(reward)(ROW, ["2", "x"], [[5], [6]]) == ([1.0, None], None)
    assert seen == {
        "prompts": ["1+1="] * 2,
        "completions": ["2", "x"],
        "answer": [2, 2],
        "completion_ids": [[5], [6]],
    }
    chat = {"prompt": [{"role": "user", "content": "1+1="}], "answer": 2}
    scorer(reward)(chat, ["2", "x"], [[5], [6]])
    assert seen["completions"] == [[{"role": "assistant", "content": "2"}], [{"role": "assistant", "content": "x"}]]


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ([float("nan"), 0], "must be finite, or None"),
        (
            [float("inf"), 0],
            "gave inf; a reward must be finite",
        ),
        ([2.0, 0], "outside [0, 1]; say the range with --reward_low"),
        (["good", 0], "must be a number, or None"),
        ([1.0], "must give a list of 2 rewards"),
        (None, "must give a list of 2 rewards"),
    ],
)
def test_rewards_that_can_not_be_used(given: Any, reason: str) -> None:
    with pytest.raises(RewardError) as caught:
        scorer(lambda **_: given)(ROW, ["2", "x"], [[5], [6]])
    assert reason in str(caught.value)


def test_a_tasks_range_is_its_own() -> None:
    class Signed(Reversal):
        reward_low, reward_high, solved_at = -1.0, 2.0, 1.5

    assert task_scorer(Signed()).spec == RewardSpec(low=-1.0, high=2.0, solved_at=1.5)


def test_a_function_that_ends_the_process_is_named() -> None:
    with pytest.raises(RewardError, match=r"reward 'mine' raised SystemExit\('usage'\) in .*test_scoring.py"):
        scorer(lambda **_: sys.exit("usage"))(ROW, ["2"], [[5]])


def test_a_function_that_fails_is_named() -> None:
    with pytest.raises(
        RewardError,
        match=r"reward 'mine' raised KeyError\('gold'\) in .*test_scoring.py, line \d+ for the prompt '1\+1='",
    ):
        scorer(lambda **columns: columns["gold"])(ROW, ["2"], [[5]])


def test_a_folder_that_goes_on_has_the_range_of_the_rewards_it_holds(tmp_path: Path) -> None:
    """Begun again, a profile of rewards to 10 took 1 for the highest."""
    folder = SampleFolder(tmp_path, lines="groups.jsonl", what="a folder", command="profile")
    folder.append([{"id": "a", "prompt": "1+1=", "rewards": [10.0, None, -2.0]}])
    marks = Scorer(lambda **_: [], name="mine", spec=RewardSpec(), declared=False)
    data = PromptData(["a"], [{"prompt": "1+1="}], None)
    sample_into(folder, data, [0], marks, SamplingOptions(), lambda: (None, None))
    assert marks.spec == RewardSpec(low=-2.0, high=10.0, solved_at=1.0)


def test_a_function_that_takes_text_for_messages_is_told_of_the_option() -> None:
    """As TRL's `think_format_reward` with prompts of text: "mend it" does not help."""
    with pytest.raises(RewardError, match="these completions are texts; for messages give chat prompts, or --system"):
        scorer(lambda completions, **_: [len(one[0]["content"]) for one in completions])(ROW, ["2"], [[5]])


@pytest.mark.parametrize("read", [lambda text: text.strip(), lambda text: re.search("4", text)])
def test_a_function_that_takes_messages_for_text_is_told_where_the_text_is(read: Any) -> None:
    chat = {"prompt": [{"role": "user", "content": "1+1="}]}
    with pytest.raises(RewardError, match=r"a list of messages, whose text is completion\[-1\]\['content'\]$"):
        scorer(lambda completions, **_: [read(text) for text in completions])(chat, ["2"], [[5]])


def test_solved_is_from_a_reward_on() -> None:
    graded = scorer(lambda **_: [0.0], low=-1.0, high=1.0, solved_at=0.5)
    assert [graded.solved(r) for r in (None, -1.0, 0.4, 0.5, 1.0)] == [None, False, False, True, True]


def test_missing_columns_are_found_before_anything_is_generated() -> None:
    def reward(completions: Any, gold: Any, weight: float = 1.0, **columns: Any) -> list[float]:
        return [weight]

    with pytest.raises(MissingColumnError, match="needs the column 'gold', but the data has prompt, answer"):
        scorer(reward).check(ROW)
    scorer(reward).check(ROW | {"gold": 2})
    with pytest.raises(TaskError, match="'nums'"):
        task_scorer(make_task("countdown")).check(ROW)
    with pytest.raises(ConfigError, match="'mine' has a parameter 'prompt', and is given lists; call it prompts"):
        scorer(lambda completions, prompt, **columns: [1.0]).check(ROW)


def test_a_task_scores_and_tells_failures() -> None:
    countdown = task_scorer(make_task("countdown"))
    row = {"prompt": "3,5:15=", "nums": [3, 5], "target": 15}
    countdown.check(row)
    rewards, failures = countdown(row, ["<answer>3*5</answer>", "<answer>3+5</answer>", "?"], [[1]] * 3)
    assert rewards == [1.0, 0.1, 0.0]
    assert failures == [None, "wrong-target", "format"]


def test_functions_from_files_and_modules(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("def good(completions, **_):\n    return [1.0 for _ in completions]\n")
    function, digest = load_reward(f"{file}:good")
    assert function(["a"]) == [1.0]
    file.write_text(file.read_text() + "\n")
    assert load_reward(f"{file}:good")[1] != digest
    assert load_reward("textwrap:dedent")[0] is textwrap.dedent
    for where, reason in (
        (
            "mine.py",
            "unknown reward 'mine.py'; give math, hendrycks, exact, boxed, code, regex:PATTERN, file.py:function",
        ),
        (f"{tmp_path}/nowhere.py:good", "does not exist"),
        (f"{file}:bad", "has no 'bad'; it has good"),
        ("no.such.module:f", "can't be imported"),
    ):
        with pytest.raises(ConfigError) as caught:
            load_reward(where)
        assert reason in str(caught.value)
    file.write_text("class Long:\n    def __init__(self, most):\n        self.most = most\n")
    with pytest.raises(ConfigError, match=r":Long' is a class, and Long\(\) raised TypeError.*'most'.*write f = "):
        load_reward(f"{file}:Long")
    file.write_text("def (")
    with pytest.raises(ConfigError, match="can't be imported: SyntaxError"):
        load_reward(f"{file}:good")


def test_what_makes_a_reward_of_trls_is_no_reward() -> None:
    pytest.importorskip("trl")
    for where in ("get_soft_overlong_punishment", "trl.rewards:get_soft_overlong_punishment"):
        with pytest.raises(ConfigError, match="punishment' is no reward, but makes one; in a file of yours write f = "):
            load_reward(where)
