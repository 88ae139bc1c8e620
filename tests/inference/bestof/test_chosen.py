"""Policies on short tasks act or are refused; `bestof` takes its setting from an evaluation, and warns."""

from __future__ import annotations

import io
import json
import logging
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from tiny import random_head

from rollwise.cli.main import main
from rollwise.errors import ConfigError, StateFileError
from rollwise.inference import BestOfN, EarlyStop, Prune, Sequential, Until, Utility
from rollwise.inference.bestof.chosen import Chosen, setting_of
from rollwise.inference.bestof.config import BestOfConfig
from rollwise.inference.bestof.gates import check_gates
from rollwise.inference.bestof.run import Answers, run_bestof
from rollwise.inference.evaluation.settings import EvaluationConfig, settings_of
from rollwise.inference.head.head import SuccessHead
from rollwise.inference.head.viability_file import note_viability, viability_path
from rollwise.inference.policies.confidence import DeepConfPolicy
from rollwise.inference.policies.defaults import policy_for, why_idle
from rollwise.inference.policies.until import AdaptiveConsistencyVote, EarlyStoppingVote
from rollwise.models import load_policy
from rollwise.renamed import RENAMED

pytest.importorskip("trl")


@pytest.fixture(scope="module")
def head(toy: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random head of the toy policy."""
    return random_head(*load_policy(toy / "one")).save(tmp_path_factory.mktemp("head") / "head.safetensors")


@pytest.fixture(scope="module")
def evaluated(options: dict[str, Any], head: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An evaluation of that head on 12 prompts of the toy data."""
    folder = tmp_path_factory.mktemp("evaluated") / "eval"
    given = ["--model", options["model"], "--reward", options["reward"], "--max_completion_length", "8"]
    assert main(["rollouts", options["data"], *given, "--num_prompts", "12", "--out", str(folder)]) == 0
    (folder.parent / "checks.py").write_text("def digit(text):\n    return text[:1].isdigit()\n")
    few = [part for name in ("taus", "betas", "mean_ks", "windows", "confidences") for part in (f"--{name}", "[]")]
    few += ["--num_generations", "4", "--live", "no", "--keeps", "[50]", "--resamples", "50", "--untils", "[0.45,0.5]"]
    few += ["--warmup", "2", "--check", f"{folder.parent / 'checks.py'}:digit"]
    assert main(["head", "evaluate", str(folder), "--head", str(head), *few]) == 0
    return folder / "evaluation"


def answer(options: dict[str, Any], out: Path, **more: Any) -> Answers:
    given = {name: value for name, value in options.items() if name != "batch_size"}
    config = BestOfConfig(**{**given, "unviable": True, "slots": 12, "num_prompts": 12, "out": str(out), **more})
    return run_bestof(config, console=Console(file=io.StringIO()))


# ---- defaults by the limit ----


@pytest.mark.parametrize(("name", "own"), [("prune", {"threshold": 0.6}), ("utility", {"beta": 0.2})])
def test_prune_and_utility_act_at_a_limit_of_18_tokens(
    name: str, own: dict[str, Any], options: dict[str, Any], head: Path, tmp_path: Path
) -> None:
    """With the warmup of 2 and the interval of 1 that `head evaluate` takes there; once it was 128."""
    short = {**options, "max_completion_length": 18, "head": str(head), "policy": name, "num_generations": 4}
    answers = answer(short, tmp_path / "some", policy_options=own)
    assert sum(line["abandoned"] for line in answers.lines) > 5
    assert not any("never acted" in note for note in answers.notes)
    assert answer(
        short, tmp_path / "same", policy_options={**own, "warmup": 2, "interval": 1}
    ).lines == answers.lines  # fmt: skip
    assert (EvaluationConfig(limit=18).warmup, EvaluationConfig(limit=18).interval) == (2, 1)
    with pytest.raises(ConfigError, match=r"could never act: its warmup of 128 tokens is not below the limit of 18"):
        answer(short, tmp_path / "never", policy_options={**own, "warmup": 128})
    assert not (tmp_path / "never").exists()


def test_a_run_in_which_the_policy_never_acted_says_so(
    options: dict[str, Any], head: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    never = {"head": str(head), "policy": "prune", "policy_options": {"threshold": 0.0}, "num_generations": 4}
    assert "policy prune never acted: all candidates of all 12 prompts were carried to the end" in answer(
        options, tmp_path / "a", **never
    ).notes[-1]  # fmt: skip
    assert not any("never" in note for note in answer(options, tmp_path / "b", head=str(head), num_generations=4).notes)
    command = [
        "bestof",
        options["data"],
        "--model",
        options["model"],
        "--reward",
        options["reward"],
        "--num_prompts",
        "5",
    ]
    command += ["--head", str(head), "--policy", "until", "--policy_options.threshold", "2", "--num_generations", "4"]
    assert main([*command, "--max_completion_length", "8", "--out", str(tmp_path / "c")]) == 0
    assert "note: policy until never acted" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        (Prune(warmup=18), "warmup of 18 tokens is not below the limit of 18"),
        (EarlyStop(warmup=20), "warmup of 20"),
        (Utility(warmup=2, beta=0), "cost nothing"),
        (Prune(warmup=2, keep=8), "keeps 8 of 8"),
        (Sequential(width=8), "begin at once"),
        (DeepConfPolicy(warmup=16), "16 candidates is not below num_generations=8"),
        (EarlyStoppingVote(window=8), "drawn before it may stop, with window=8 and num_generations=8"),
        (AdaptiveConsistencyVote(threshold=0.999), "lower threshold"),  # 8 alike: 1 - 1/512 = .998
        (EarlyStoppingVote(window=7), None),
        (AdaptiveConsistencyVote(threshold=0.99), None),  # 6 alike: 1 - 1/128 = .992
        (Prune(warmup=17), None),
        (Utility(warmup=2), None),
        (Sequential(), None),
        (Until(width=8), None),
        (BestOfN(), None),
    ],
    ids=repr,
)
def test_what_can_never_act(policy: Any, words: str | None) -> None:
    why = why_idle(policy, k=8, limit=18)
    assert why is None if words is None else words in str(why)
    assert why_idle(BestOfN(), k=1, limit=1) is None
    assert why_idle(Until(), k=1, limit=18) == "there is one candidate, num_generations=1"


def test_one_default_for_both_commands() -> None:
    for limit in (18, 80, 1024):
        config = EvaluationConfig(limit=limit)
        both = {"warmup": config.warmup, "interval": config.interval}
        assert policy_for("prune", {}, k=8, limit=limit) == Prune(**both)
        assert policy_for("utility", {}, k=8, limit=limit) == Utility(**both)
        assert policy_for("early-stop", {}, k=8, limit=limit) == EarlyStop(**both)
        assert policy_for("early-stop", {"finished": True}, k=8, limit=limit) == EarlyStop(finished=True)
    with pytest.raises(ConfigError, match="warmup must be below the limit of 18 tokens to act, got 128"):
        EvaluationConfig(limit=18, warmup=128)


def test_deepconf_s_defaults_are_its_paper_s_where_they_fit() -> None:
    """16 of 32 candidates or more, groups of 2048 tokens from a limit of 16,384 on; below, half and an eighth."""
    paper = policy_for("deepconf", {}, k=512, limit=64_000)
    assert (paper.warmup, paper.window, paper.interval) == (16, 2048, 16) == (
        DeepConfPolicy().warmup, DeepConfPolicy().window, DeepConfPolicy().interval,
    )  # fmt: skip
    small = policy_for("deepconf", {}, k=8, limit=64)
    assert (small.warmup, small.window, small.interval) == (4, 8, 2)
    assert policy_for("deepconf", {"warmup": 32, "window": 4096}, k=64, limit=64_000).window == 4096
    names = {s.name: s.policy for s in settings_of(EvaluationConfig(limit=64_000, num_generations=64))}
    assert names["deepconf 10"] == paper


# ---- a setting from an evaluation ----


def test_early_stop_of_an_evaluation_of_before_looks_at_finished_candidates(evaluated: Path, tmp_path: Path) -> None:
    found = json.loads((evaluated / "evaluation.json").read_text())
    given = {"threshold": 0.7, "warmup": 1, "interval": 1}
    options = {"policy": "early-stop", "policy_options": given}
    kept = found["policies"][0]
    for name, own, finished in (("old", given, True), ("new", {**given, "finished": False}, False)):
        found["policies"].append({**kept, "name": name, "options": {**options, "policy_options": own}})
        (tmp_path / "evaluation.json").write_text(json.dumps(found))
        assert setting_of(tmp_path, name).options["policy_options"] == {**given, "finished": finished}


def test_bestof_takes_the_cheapest_setting_that_loses_nothing(
    evaluated: Path, options: dict[str, Any], head: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    found = json.loads((evaluated / "evaluation.json").read_text())
    good = [p for p in found["policies"] if not p["headless"] and p["accuracy_difference"]["value"] >= -0.01]
    best = min(good, key=lambda p: (p["row_forwards"]["mean"], not p["baseline"], p["name"]))
    chosen = setting_of(evaluated)
    assert chosen.name == setting_of(evaluated / "evaluation.json").name == best["name"]
    config = BestOfConfig(data=options["data"], head=str(head), evaluation=str(evaluated))
    assert (config.policy, config.policy_options) == (best["options"]["policy"], best["options"]["policy_options"])
    assert (config.num_generations, config.mean_k, config.select) == (4, best["mean_k"], "value-end")
    older = tmp_path / "older" / "evaluation.json"
    older.parent.mkdir()
    old = {now: name for name, now in RENAMED["head evaluate"].items()}
    older.write_text(json.dumps(found | {"config": {old.get(name, name): v for name, v in found["config"].items()}}))
    assert setting_of(older).options == chosen.options
    with caplog.at_level(logging.WARNING):
        by_it = answer(options, tmp_path / "a", head=str(head), evaluation=str(evaluated / "evaluation.json"))
    assert "was chosen on something else" not in caplog.text  # same model, head, data and limit
    assert not any("pass rate" in note for note in by_it.notes)
    plain = answer(
        options,
        tmp_path / "b",
        head=str(head),
        policy=config.policy,
        policy_options=config.policy_options,
        num_generations=4,
    )
    named = ("id", "answer", "row_forwards", "steps", "rewards")
    assert [[line[n] for n in named] for line in by_it.lines] == [[line[n] for n in named] for line in plain.lines]


def test_another_setting_by_its_name(evaluated: Path, options: dict[str, Any], head: Path, tmp_path: Path) -> None:
    config = BestOfConfig(data=options["data"], head=str(head), evaluation=str(evaluated), setting="prune 0.5")
    assert config.policy_options == {"warmup": 2, "interval": 1, "keep": 2, "threshold": 0.5}
    with pytest.raises(ConfigError, match="setting must be one of the evaluation's, none, prune 0.2"):
        setting_of(evaluated, "prune 7")
    with pytest.raises(ConfigError, match="policy is 'prune' in setting 'prune 0.5' of .*, and 'until' is given"):
        BestOfConfig(
            data=options["data"], head=str(head), evaluation=str(evaluated), setting="prune 0.5", policy="until"
        )
    with pytest.raises(ConfigError, match="setting 'check' needs no success head; leave out --head"):
        BestOfConfig(data=options["data"], head=str(head), evaluation=str(evaluated), setting="check")
    with pytest.raises(ConfigError, match="add --evaluation FOLDER"):
        BestOfConfig(data=options["data"], setting="check")
    with pytest.raises(StateFileError, match="run `rollwise head evaluate`"):
        setting_of(tmp_path)
    found = json.loads((evaluated / "evaluation.json").read_text())
    for policy in found["policies"]:
        del policy["options"]
    (tmp_path / "evaluation.json").write_text(json.dumps(found))
    with pytest.raises(ConfigError, match="evaluated by an earlier version"):
        setting_of(tmp_path)


def test_it_warns_where_model_data_or_limit_are_others(
    evaluated: Path, options: dict[str, Any], toy: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model, tokenizer = load_policy(toy / "one")
    other = random_head(model, tokenizer, seed=5).save(tmp_path / "other.safetensors")
    for parameter in model.parameters():
        parameter.data.mul_(1.01)
    model.save_pretrained(tmp_path / "moved")
    tokenizer.save_pretrained(tmp_path / "moved")
    rows = (toy / "data.jsonl").read_text().splitlines()[:15]
    (tmp_path / "data.jsonl").write_text("\n".join(rows) + "\n")
    changed = {
        **options, "model": str(tmp_path / "moved"), "data": str(tmp_path / "data.jsonl"), "max_completion_length": 9,
        "stop": ["7"],
    }  # fmt: skip
    with caplog.at_level(logging.WARNING):
        answer(changed, tmp_path / "a", head=str(other), evaluation=str(evaluated), setting="prune 0.5")
    for words in (
        "the model's weights (digest) was", "the head was", "the limit of tokens was 8 there and is 9 here",
        "the data was", "the list of stop texts was [] there and is ['7'] here",
        "'prune 0.5' was chosen on something else",
    ):  # fmt: skip
        assert words in caplog.text, words


def test_it_warns_where_the_pass_rate_is_another(evaluated: Path, options: dict[str, Any], tmp_path: Path) -> None:
    """Easy prompts: thresholds of 10, where a first digit is all that it takes; V(x) where nothing is scored."""
    chosen = setting_of(evaluated, "until 0.5")
    there, value = chosen.found["best_of"][0]["accuracy"]["mean"], chosen.found["value"]
    assert chosen.easier_or_harder([True] * 40, [value] * 40) is not None
    said = str(chosen.easier_or_harder([True] * 40, [value] * 40))
    assert f"the pass rate of these 40 prompts is 1.000, that of the evaluation {there:.3f}" in said
    right = [i < round(40 * there) for i in range(40)]
    assert chosen.easier_or_harder(right, [value] * 40) is None
    assert chosen.easier_or_harder([None, *right[1:]], [value] * 40) is None
    assert "the mean V(x) of these 400 prompts" in str(chosen.easier_or_harder([None] * 400, [value + 0.2] * 400))
    assert chosen.easier_or_harder([None], [float("nan")]) is None
    assert isinstance(chosen, Chosen)


def test_the_first_candidate_s_reward_is_kept_for_it(
    evaluated: Path, options: dict[str, Any], head: Path, tmp_path: Path
) -> None:
    full = answer(options, tmp_path / "full", head=str(head), num_generations=4, keep_texts="all")
    some = answer(options, tmp_path / "some", head=str(head), evaluation=str(evaluated), setting="until 0.5")
    assert "first_value" not in full.lines[0]
    for line, whole in zip(some.lines, full.lines, strict=True):
        assert line["first_value"] == whole["candidates"][0]["values"][0]
        assert (line["first_solved"] is None) == (whole["candidates"][0]["text"] == "")


def test_confidence_is_not_compared_with_the_head_s_value(
    evaluated: Path, options: dict[str, Any], tmp_path: Path
) -> None:
    """Nothing is scored, and no head is read: the confidences are no V(x)."""
    unscored = {name: value for name, value in options.items() if name != "reward"}
    answers = answer(unscored, tmp_path / "a", evaluation=str(evaluated), setting="deepconf 50")
    assert answers.lines[0]["value_end"] > 1
    assert answers.lines[0]["first_value"] is None
    assert not any("V(x)" in note for note in answers.notes)


# ---- a check of the text ----


def test_bestof_goes_on_until_a_text_passes(options: dict[str, Any], evaluated: Path, tmp_path: Path) -> None:
    """By hand, from all four: the first whose text begins with a digit; the whole cost is up to there."""
    full = answer(options, tmp_path / "full", select="majority", num_generations=4, keep_texts="all")
    check = f"{evaluated.parents[1] / 'checks.py'}:digit"
    some = answer(options, tmp_path / "some", policy="check", check=check, num_generations=4)
    stopped = 0
    for line, whole in zip(some.lines, full.lines, strict=True):
        drawn = whole["candidates"]
        first = next((j for j, one in enumerate(drawn) if one["text"][:1].isdigit()), None)
        until = 3 if first is None else first
        assert line["row_forwards"] == sum(len(one["token_ids"]) for one in drawn[: until + 1])
        assert first is None or line["answer"] == drawn[first]["text"]
        stopped += until < 3
    assert stopped > 0
    taken = answer(options, tmp_path / "taken", evaluation=str(evaluated), setting="check", check=check)
    assert [line["answer"] for line in taken.lines] == [line["answer"] for line in some.lines]
    with pytest.raises(ConfigError, match="these data bring none: add --check file.py:function"):
        answer(options, tmp_path / "none", policy="check", num_generations=4)
    with pytest.raises(ConfigError, match="is for policy check, got policy 'none'"):
        BestOfConfig(data=options["data"], check=check, select="majority")


# ---- the gates ----


def test_a_head_that_failed_the_viability_gate_is_refused(
    options: dict[str, Any], evaluated: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """By the verdict that `head evaluate` left beside its file, or by the evaluation; `unviable` takes it."""
    model, tokenizer = load_policy(options["model"])
    head = random_head(model, tokenizer, seed=5)
    path = head.save(tmp_path / "bad.safetensors")
    told = {"k": 4, "prompts": 12, "value": 0.5, "random": 0.5, "gain": 0.0, "low": -0.1, "high": 0.1}
    given = {**options, "num_generations": 2, "num_prompts": 3}
    answer(given, tmp_path / "unknown", head=str(path), unviable=False)
    note_viability(path, "another head", {**told, "verdict": "failed"})
    answer(given, tmp_path / "other", head=str(path), unviable=False)
    note_viability(path, head.digest, {**told, "verdict": "passed"})
    answer(given, tmp_path / "passed", head=str(path), unviable=False)
    note_viability(path, head.digest, {**told, "verdict": "failed"})
    with pytest.raises(ConfigError, match=r"Viability gate failed: value@4 0.500 .* add --unviable"):
        answer(given, tmp_path / "failed", head=str(path), unviable=False)
    answer(given, tmp_path / "taken", head=str(path))
    assert "don't decode with this head" in caplog.text


def test_the_evaluation_s_verdicts_count_too(
    options: dict[str, Any], head: Path, evaluated: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = evaluated / "evaluation.json"
    found = json.loads(file.read_text())
    told = found["calibration"]["viability"]
    assert viability_path(head).exists() == (told is not None)
    changed = tmp_path / "changed"
    changed.mkdir()
    found["calibration"]["viability"] = {**told, "verdict": "failed"}
    found["calibration"]["length_gate"]["verdict"] = "blind"
    (changed / "evaluation.json").write_text(json.dumps(found))
    given = {**options, "num_prompts": 3}
    early = next(p["name"] for p in found["policies"] if p["family"] == "none")
    with pytest.raises(ConfigError, match="Viability gate failed"):
        answer(
            given, tmp_path / "a", head=str(head), evaluation=str(changed), setting=early, unviable=False
        )  # fmt: skip
    config = BestOfConfig(data="a.jsonl", head=str(head), unviable=True, evaluation=str(changed), setting=early)
    check_gates(config, SuccessHead.load(head), EarlyStop())
    assert "expected lengths are no better than a constant" in caplog.text
    caplog.clear()
    check_gates(config, SuccessHead.load(head), Prune())
    assert "expected lengths" not in caplog.text
