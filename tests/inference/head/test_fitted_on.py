"""Heads say what they were fitted on; the commands count, refuse or say where that is not what they are used on."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from tiny import random_head

from rollwise.cli import main
from rollwise.errors import ConfigError, StateFileError
from rollwise.inference.bestof.config import BestOfConfig
from rollwise.inference.bestof.run import Answers, run_bestof
from rollwise.inference.head.fitted_on import PROMPT_HASHES, fitted_among
from rollwise.inference.head.head import SuccessHead
from rollwise.inference.head.verdict import Verdict
from rollwise.inference.head.viability_file import viability_path
from rollwise.inference.serving.export import export_head
from rollwise.inference.serving.export_config import HEAD_FILE
from rollwise.models import load_policy
from rollwise.models.identity import made_by, model_facts, weights_digest

torch = pytest.importorskip("torch")
pytest.importorskip("trl")
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def policy(toy: Path) -> tuple[Any, Any]:
    return load_policy(toy / "one")


@pytest.fixture(scope="module")
def fitted(options: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `train` and `eval` rollouts of one file, and a head fitted on `train`."""
    folder = tmp_path_factory.mktemp("fitted")
    for split in ("train", "eval"):
        given = ["--model", options["model"], "--reward", options["reward"], "--max_completion_length", "8"]
        assert main(["rollouts", options["data"], *given, "--split", split, "--out", str(folder / split)]) == 0
    assert main(["head", "fit", str(folder / "train"), "--out", str(folder / "head.safetensors")]) == 0
    return folder


def as_before(head: SuccessHead) -> SuccessHead:
    """As the version before wrote it: without the weights' digest and the prompts' hashes."""
    about = {name: value for name, value in head.about.items() if name != PROMPT_HASHES}
    facts = {name: value for name, value in head.model.items() if name != "weights_digest"}
    return replace(head, about=about, model=facts)


def answer(options: dict[str, Any], out: Path, **more: Any) -> Answers:
    given = {name: value for name, value in options.items() if name != "batch_size"}
    config = BestOfConfig(**{**given, "num_generations": 4, "slots": 12, "out": str(out), "num_prompts": 10, **more})
    return run_bestof(config, console=Console(file=io.StringIO()))


# ---- prompts ----


def test_an_evaluation_counts_and_refuses_prompts_that_were_fitted_on(command: Run, fitted: Path) -> None:
    grid = [part for name in ("thresholds", "taus", "betas", "sequential_betas", "untils", "mean_ks", "windows")
            for part in (f"--{name}", "[]")]  # fmt: skip
    few = ("--num_generations", 2, "--live", "no", "--keeps", "[50]", "--confidences", "[]", "--resamples", 50, *grid)
    head = ("--head", fitted / "head.safetensors")
    status, _, err = command("head", "evaluate", fitted / "train", *head, *few)
    count = len((fitted / "train/rollouts.jsonl").read_text().splitlines())
    assert status == 1
    assert f"rollwise: the head was fitted on {count} of the {count} prompts" in err
    assert not (fitted / "train/evaluation").exists()
    status, _, err = command("head", "evaluate", fitted / "train", *head, *few, "--fitted", "true")
    assert status == 0, err
    assert json.loads((fitted / "train/evaluation/evaluation.json").read_text())["fitted"] == count
    for file in ("table.md", "report.html"):
        assert (
            f"{count} prompts, the head was fitted on {count} of them"
            in (fitted / "train/evaluation" / file).read_text()
        )
    status, _, err = command("head", "evaluate", fitted / "eval", *head, *few)
    assert status == 0, err
    assert "the head was fitted on none of them" in (fitted / "eval/evaluation/table.md").read_text()
    assert "rollouts scored: " in err  # heard through a pipe
    old = fitted / "old.safetensors"
    as_before(SuccessHead.load(fitted / "head.safetensors")).save(old)
    status, _, err = command("head", "evaluate", fitted / "train", "--head", old, *few, "--out", fitted / "old")
    assert status == 0, err
    assert "whether the head was fitted on some of them is not known" in (fitted / "old/table.md").read_text()
    viability_path(fitted / "head.safetensors").unlink()  # else `bestof` refuses a toy that fails the gate


def test_score_and_bestof_say_how_many(command: Run, fitted: Path, options: dict[str, Any], tmp_path: Path) -> None:
    head = fitted / "head.safetensors"
    for split, words in (
        ("train", r"fitted on \d+ of the \d+ prompts"),
        ("eval", r"fitted on none of the \d+ prompts"),
    ):
        status, out, _ = command("head", "score", fitted / split, "--head", head, "--out", tmp_path / f"{split}.jsonl")
        assert status == 0
        assert _found(words, out)
    status, out, err = command(
        "bestof", options["data"], "--model", options["model"], "--reward", options["reward"], "--num_generations", 2,
        "--head", head, "--max_completion_length", 8, "--num_prompts", 40, "--out", tmp_path / "all",
    )  # fmt: skip
    assert status == 0, err
    count = len((fitted / "train/rollouts.jsonl").read_text().splitlines())
    assert f"note: the head was fitted on {count} of the 40 prompts" in out
    assert (
        answer(options, tmp_path / "eval", head=str(head), split="eval")
        .notes[0]
        .startswith("the head was fitted on none of the ")
    )
    assert fitted_among(SuccessHead.load(head), [[1, 2, 3]]) == 0


def _found(pattern: str, text: str) -> bool:
    import re

    return re.search(pattern, text) is not None


# ---- weights ----


def test_other_weights_warn_with_both_digests_and_bestof_wants_transfer(
    policy: tuple[Any, Any], options: dict[str, Any], fitted: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    import copy

    model, tokenizer = policy
    given = weights_digest(model)
    head = fitted / "head.safetensors"
    assert SuccessHead.load(head).model["weights_digest"] == given
    other = copy.deepcopy(model)
    for parameter in other.parameters():
        parameter.data.mul_(1.01)
    other.save_pretrained(tmp_path / "other")
    tokenizer.save_pretrained(tmp_path / "other")
    moved = {**options, "model": str(tmp_path / "other")}
    digests = rf"fitted on weights of digest {given}, those of the model have {weights_digest(other)}"
    with pytest.raises(ConfigError, match=f"{digests}.*--transfer"):
        answer(moved, tmp_path / "out", head=str(head))
    with caplog.at_level(logging.WARNING):
        answer(options, tmp_path / "own", head=str(head))
        assert caplog.text == ""
        answer(moved, tmp_path / "out", head=str(head), transfer=True)
    assert _found(digests, caplog.text)
    caplog.clear()
    scored = ("head", "score", fitted / "eval", "--head", head, "--model", tmp_path / "other", "--out", tmp_path / "s")
    assert main([str(part) for part in scored]) == 0
    assert _found(digests, caplog.text)


def test_an_exported_head_is_that_of_the_model_beside_it(policy: tuple[Any, Any], tmp_path: Path) -> None:
    """The head's rows are part of the weights then."""
    import copy

    model, tokenizer = copy.deepcopy(policy[0]), policy[1]
    head = replace(random_head(model, tokenizer), model=made_by(model, tokenizer))
    export_head(model, tokenizer, head, tmp_path / "served", resize=True)
    served, _ = load_policy(tmp_path / "served")
    assert weights_digest(served) != head.model["weights_digest"]
    assert SuccessHead.load(tmp_path / "served" / HEAD_FILE).model["weights_digest"] == weights_digest(served)


# ---- bad heads ----


def verdict_of(states: int, width: int, value: float = 0.5) -> Verdict:
    return Verdict(torch.full((3, states, width), value), torch.zeros(states))


def written(head: SuccessHead, path: Path, **parts: Any) -> Path:
    """A file with these parts in place of the head's, which could not be made so."""
    made = object.__new__(SuccessHead)
    for name, value in {**vars(head), **parts}.items():
        object.__setattr__(made, name, value)
    return SuccessHead.save(made, path)


def test_bad_heads_are_refused_at_load_in_one_line(policy: tuple[Any, Any], tmp_path: Path) -> None:
    head = random_head(*policy)
    nan, infinite = head.weight.clone(), head.weight.clone()
    nan[0, 3], infinite[2, :5] = float("nan"), float("inf")
    for parts, words in (
        ({"weight": nan}, "1 of the .* numbers of its weight are NaN or infinite"),
        ({"weight": infinite}, "5 of the .* numbers of its weight are NaN or infinite"),
        ({"verdict": verdict_of(2, 32, float("nan"))}, "numbers of its verdict's weight are NaN or infinite"),
        ({"verdict": verdict_of(3, 32)}, r"the verdict's weight must be \(windows, 2 reward states, 32 hidden units\)"),
        ({"verdict": verdict_of(2, 31)}, r"the verdict's weight must be \(windows, 2 reward states, 32 hidden units\)"),
        ({"model": {}}, "does not say which model it was fitted on .no architecture, hidden_size, .* fit any"),
        ({"model": {"architecture": "X", "hidden_size": 32}}, "no num_hidden_layers, tokenizer"),
    ):
        file = written(head, tmp_path / "bad.safetensors", **parts)
        with pytest.raises(StateFileError, match=words) as error:
            SuccessHead.load(file)
        assert "\n" not in str(error.value)
    with pytest.raises(ConfigError, match="NaN or infinite"):
        replace(head, weight=nan)


def test_the_width_is_checked_before_anything_is_decoded(
    policy: tuple[Any, Any], options: dict[str, Any], command: Run, fitted: Path, tmp_path: Path
) -> None:
    wide = replace(random_head(*policy), weight=torch.zeros(8, 40)).save(tmp_path / "wide.safetensors")
    words = "this success head reads 40 hidden units, the model has 32"
    with pytest.raises(ConfigError, match=words):
        answer(options, tmp_path / "out", head=str(wide), policy="sequential")
    for name in ("score", "evaluate", "export"):
        more = ("--rollouts", fitted / "eval", "--out", tmp_path / "served") if name == "export" else ("--head", wide)
        status, _, err = command("head", name, wide if name == "export" else fitted / "eval", *more)
        assert status == 1
        assert words in err.strip().splitlines()[-1]
        assert "Traceback" not in err


def test_old_heads_load_with_a_note_and_factless_ones_with_transfer(
    policy: tuple[Any, Any], options: dict[str, Any], fitted: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    old = as_before(SuccessHead.load(fitted / "head.safetensors"))
    assert old.model == model_facts(*policy)
    with caplog.at_level(logging.WARNING):
        answers = answer(options, tmp_path / "old", head=str(old.save(tmp_path / "old.safetensors")))
    assert "can't be checked: an earlier version wrote it, without their digest" in caplog.text
    assert "can't be checked: an earlier version wrote it, without their hashes" in answers.notes[0]
    factless = str(replace(old, model={}).save(tmp_path / "factless.safetensors"))
    with pytest.raises(StateFileError, match="does not say which model"):
        answer(options, tmp_path / "factless", head=factless)
    assert len(answer(options, tmp_path / "factless", head=factless, transfer=True).lines) == 10
