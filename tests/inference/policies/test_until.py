"""One candidate after another, until one's value, or its text, is good enough: against replays by hand."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_decoder import LIMIT, STATES, FakeDecoder, judge
from test_evaluation import by_name, make, scored

from rollwise.errors import ConfigError, RewardError
from rollwise.inference import BestOfN, Until, UntilChecked, make_policy
from rollwise.inference.evaluation.best_of_n_curve import best_of_curve
from rollwise.inference.evaluation.calibration import calibration_report
from rollwise.inference.evaluation.replay import logged, replay
from rollwise.inference.evaluation.settings import EvaluationConfig, settings_of
from rollwise.inference.evaluation.study import Evaluation
from rollwise.inference.evaluation.text_check import TextCheck, check_for, check_of
from rollwise.reports.inference.report import write_inference_report
from rollwise.tasks import Countdown
from rollwise.tasks.countdown.items import draws
from rollwise.tasks.countdown.search import says_found, search_demonstration

CHECK = TextCheck("no wrong 0", "abc", lambda text: "wrong 0" not in text)


def test_until_is_the_replay_by_hand() -> None:
    """The first candidate of a value of at least .6 ends it, and is the answer; else the best of all eight."""
    decode = FakeDecoder(prompts=12, k=8)
    few, many = 0, 0
    for prompt in [logged(result) for result in decode(BestOfN(), 3)[0]]:
        ends = [float((chances @ STATES)[-16:].mean()) for chances in prompt.chances]
        reached = next((j for j, end in enumerate(ends) if end >= 0.6), 7)
        mine = replay(prompt, Until(threshold=0.6), limit=LIMIT, states=STATES)
        assert [c.index for c in mine.complete] == list(range(reached + 1))
        assert mine.row_forwards == mine.steps == int(prompt.lengths[: reached + 1].sum())
        few, many = few + (reached < 7), many + (reached > 0)
    assert few > 3
    assert many > 3


def test_two_at_a_time_the_other_is_given_up() -> None:
    decode = FakeDecoder(prompts=12, k=8)
    abandoned = 0
    for prompt in [logged(result) for result in decode(BestOfN(), 3)[0]]:
        result = replay(prompt, Until(threshold=0.6, width=2), limit=LIMIT, states=STATES)
        abandoned += sum(c.state == "abandoned" for c in result.candidates)
    assert abandoned > 3
    assert make_policy("until", threshold=0.6, width=2) == Until(threshold=0.6, width=2)
    with pytest.raises(ConfigError, match="width"):
        Until(width=0)


def test_the_text_rule_is_the_replay_by_hand_in_every_table(tmp_path: Path) -> None:
    """The first candidate whose text passes ends it, and is the answer; where none does, the majority of all."""
    decode = FakeDecoder()
    evaluation = make(tmp_path, decode, check=CHECK, live="check, until 0.7", untils=(0.7,))
    calibration = calibration_report(scored_with_check(), steps=(0, 6), prune_step=6, k=4)
    found = evaluation.run(calibration=calibration, fitted=0)
    cost, right, drawn_in_vain = [], [], 0
    for seed in (0, 1, 2):
        for i in range(12):
            texts = [decode.text(seed, i, j) for j in range(4)]
            stop = next((j for j in range(4) if "wrong 0" not in texts[j]), None)
            drawn_in_vain += stop is None
            cost.append(sum(len(decode.candidate(seed, i, j)[0]) for j in range(4 if stop is None else stop + 1)))
            right.append("right" in (max(texts, key=texts.count) if stop is None else texts[stop]))
    policy = by_name(found)["check"]
    assert policy["row_forwards"]["mean"] == pytest.approx(np.mean(cost))
    assert policy["accuracy"]["mean"] == pytest.approx(np.mean(right))
    assert (policy["headless"], policy["rule"], policy["live"]["as_replayed"]) == (True, "checked", 1.0)
    assert by_name(found)["until 0.7"]["live"]["as_replayed"] == 1.0
    families = {point["family"] for point in found["held_out"]}
    assert {"until", "check"} <= families
    assert found["best_of"][0]["checked"] == pytest.approx(found["best_of"][0]["majority"])  # of one there is no choice
    assert "checked" in calibration["selection"]["accuracy"]
    write_inference_report(tmp_path)
    table = (tmp_path / "table.md").read_text()
    for line in ("| check |", "| until 0.7 |", "| row-forwards | until |", "| row-forwards | check |", "by the check",
                 "| AUC of the check of the text, pooled |", "| checked |"):  # fmt: skip
        assert line in table, line
    assert "until its text passes the check no wrong 0" in table


def scored_with_check() -> Any:
    from dataclasses import replace

    plain = scored()
    return replace(plain, passed=[answer == "True" for answer in plain.answers])


def test_the_check_s_auc_is_that_of_a_yes_or_no() -> None:
    """In `scored` an answer is whether it is right, so this check knows all: AUC 1, all that pass are right."""
    found = calibration_report(scored_with_check(), steps=(), prune_step=6, k=4)
    assert (found["check"]["pooled"], found["check"]["within"], found["check"]["right"]) == (1.0, 1.0, 1.0)
    assert found["selection"]["accuracy"]["checked"] == found["selection"]["accuracy"]["oracle"]
    assert calibration_report(scored(), steps=(), prune_step=6, k=4)["check"] is None


def test_best_of_n_by_a_check_by_hand() -> None:
    """Rewards 0, 1, 1; the second passes. Of one: 2/3. Of two: 01 and 12 take the second, 02 the first answer a: 2/3.
    Of all the second."""
    given = {"values_end": [[0.9, 0.1, 0.2]], "rewards": [[0, 1, 1]], "lengths": [[1, 1, 1]]}
    curve = best_of_curve(**given, answers=[["a", "b", "b"]], passed=[[False, True, False]], rule="checked")
    np.testing.assert_allclose(curve.accuracy[:, 0], [2 / 3, 2 / 3, 1.0])
    with pytest.raises(ConfigError, match="needs passed"):
        best_of_curve(**given, answers=[["a", "b", "b"]], rule="checked")


def test_another_check_is_another_row_of_the_same_folder(tmp_path: Path) -> None:
    def settings(check: TextCheck | None) -> list[str]:
        return [s.key for s in settings_of(EvaluationConfig(limit=64), check) if s.family == "check"]

    assert settings(None) == []
    assert settings(CHECK) == ["UntilChecked(width=1) mean_k=None rule=checked signal=nothing check=abc"]
    make(tmp_path, FakeDecoder(), check=CHECK, live="no").run()
    other = TextCheck("nothing", "def", lambda text: False)
    found = make(tmp_path, FakeDecoder(), check=other, live="no").run()
    policies = by_name(found)
    assert policies["check"]["row_forwards"] == policies["none"]["row_forwards"]  # nothing passes
    assert found["check"] == {"name": "nothing", "digest": "def"}
    write_inference_report(tmp_path)
    assert "Never acted, all candidates were carried to the end:" in (tmp_path / "table.md").read_text()
    assert not policies["check"]["acted"]


def test_countdown_brings_its_own_for_texts_that_say_so() -> None:
    """On the demonstrations the text's verdict is right wherever the demonstrator's arithmetic is: always."""
    rng, items = random.Random(0), draws(3, random.Random(1))
    found = [0, 0]
    for item, _ in zip(items, range(200), strict=False):
        text = search_demonstration(item, rng.random() < 0.5, rng)
        right = Countdown(style="search").reward([""], [text], nums=[item.nums], target=[item.target]) == [1.0]
        assert says_found(text) == right
        found[right] += 1
    assert min(found) > 40
    assert check_of(None, Countdown(style="search")) == TextCheck("that of countdown", "task countdown", says_found)
    assert check_of(None, Countdown()) is None  # compact: the text holds no verdict


def test_bad_checks_are_named(tmp_path: Path) -> None:
    (tmp_path / "checks.py").write_text(
        "def good(text):\n    return 'x' in text\n\ndef odd(text):\n    return text\n\ndef fails(text):\n    1 / 0\n"
    )
    file = tmp_path / "checks.py"
    check = check_for(f"{file}:good", None)
    assert (check("axe"), check("b"), check.vote("axe"), check.vote("b")) == (True, False, "passed", None)
    with pytest.raises(RewardError, match="gave 'b' for the text 'b'; give true or false"):
        check_for(f"{file}:odd", None)("b")
    with pytest.raises(RewardError, match="raised ZeroDivisionError"):
        check_for(f"{file}:fails", None)("b")
    with pytest.raises(ConfigError, match="check '.*has no 'bad'"):
        check_for(f"{file}:bad", None)
    with pytest.raises(ConfigError, match="check must be file.py:name"):
        check_for("good", None)


def test_rows_of_until_and_check_survive_a_kill(tmp_path: Path) -> None:
    whole = make(tmp_path / "a", FakeDecoder(), check=CHECK, live="no")
    whole.run()
    lines = (tmp_path / "a/runs.jsonl").read_text().splitlines(keepends=True)
    idle = FakeDecoder()
    (tmp_path / "a/runs.jsonl").write_text("".join(lines[:-5]) + lines[-5][:20])
    text = (tmp_path / "a/evaluation.json").read_text()
    make(tmp_path / "a", idle, check=CHECK, live="no").run()
    assert idle.calls == []
    assert (tmp_path / "a/evaluation.json").read_text() == text


def test_the_evaluation_keeps_what_bestof_takes(tmp_path: Path) -> None:
    config = EvaluationConfig(
        limit=LIMIT, num_generations=4, thresholds=(0.4,), taus=(0.8,), betas=(0.05,), sequential_betas=(0.1,),
        mean_ks=(2,), windows=(2,), confidences=(0.8,), keeps=(50.0,), resamples=50, live="no", warmup=5,
    )  # fmt: skip
    made = Evaluation(tmp_path, config, decode=FakeDecoder(), judge=judge, states=STATES, digests={"data_hash": "x"})
    made.run()
    found = json.loads((tmp_path / "evaluation.json").read_text())
    prune = by_name(found)["blend 2/0.4"]["options"]
    assert prune == {
        "policy": "prune", "policy_options": {"warmup": 5, "interval": 1, "keep": 2, "threshold": 0.4}
    }  # fmt: skip
    assert found["digests"] == {"data_hash": "x"}
    chances = [FakeDecoder().candidate(0, i, 0)[1][0] for i in range(12)]
    assert found["value"] == pytest.approx(np.mean(chances))
    assert make_policy("check") == UntilChecked()
