"""`rollwise bestof`: prompts in, chosen answers with their cost out."""

from __future__ import annotations

import io
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from deepconf import lowest_group_confidence
from rich.console import Console
from tiny import random_head

from rollwise.cli.main import main
from rollwise.errors import ConfigError
from rollwise.inference.bestof.config import BestOfConfig
from rollwise.inference.bestof.run import Answers, run_bestof
from rollwise.inference.endpoint.config import EndpointConfig
from rollwise.inference.head.head import SuccessHead
from rollwise.inference.policies.agreement import RULES
from rollwise.inference.policies.policies import POLICIES
from rollwise.inference.policies.selection import CHOICES, answer_key
from rollwise.models import load_policy
from rollwise.options import options_of


@pytest.fixture(scope="module")
def head(toy: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random head of the toy policy."""
    model, tokenizer = load_policy(toy / "one")
    return random_head(model, tokenizer).save(tmp_path_factory.mktemp("head") / "head.safetensors")


def answer(options: dict[str, Any], out: Path, **more: Any) -> Answers:
    given = {name: value for name, value in options.items() if name != "batch_size"}
    config = BestOfConfig(**{**given, "num_generations": 4, "slots": 12, "out": str(out), **more})
    return run_bestof(config, console=Console(file=io.StringIO()))


def test_every_prompt_has_an_answer_and_its_cost(options: dict[str, Any], head: Path, tmp_path: Path) -> None:
    answers = answer(options, tmp_path / "a", head=str(head), keep_texts="all")
    assert len(answers.lines) == 40
    for line in answers.lines:
        candidates = line["candidates"]
        assert line["answer"] == candidates[line["chosen"]]["text"]
        assert line["row_forwards"] == sum(len(c["token_ids"]) for c in candidates)
        assert line["steps"] == max(len(c["token_ids"]) for c in candidates)
        whole = [c for c in candidates if c["state"] == "finished"] or candidates
        ends = [sum(c["values"][-16:]) / len(c["values"][-16:]) for c in whole]
        assert line["value_end"] == pytest.approx(max(ends), abs=1e-5)
    scored = [line["rewards"][0] for line in answers.lines if line["rewards"][0] is not None]
    assert answers.accuracy == pytest.approx(sum(scored) / len(scored))


def test_a_mean_over_fewer_answers_than_prompts_says_so() -> None:
    """Rewards 1, 0 and none: a mean of 0.5, of two of three prompts."""
    cost = {"row_forwards": 8, "steps": 4, "complete": 2, "k": 2}
    lines = [{**cost, "rewards": [reward]} for reward in (1.0, 0.0, None)]
    few, all_ = (Answers(Path("out"), some, 1.0, 0).words("none") for some in (lines, lines[:2]))
    assert "3 prompts, policy none, 2 candidates: mean reward 0.500 of the 2 that could be scored; 8.0 row" in few
    assert "2 prompts, policy none, 2 candidates: mean reward 0.500; 8.0 row" in all_


def test_policies_spend_less_on_the_same_candidates(options: dict[str, Any], head: Path, tmp_path: Path) -> None:
    full = answer(options, tmp_path / "full", head=str(head), keep_texts="all")
    rhythm = {"warmup": 2, "interval": 1}
    for name, own in {
        "prune": {**rhythm, "threshold": 0.6},
        "early-stop": {"threshold": 0.5},
        "utility": {**rhythm, "beta": 0.2},
        "sequential": {"beta": 0.3},
    }.items():
        some = answer(options, tmp_path / name, head=str(head), policy=name, policy_options=own, keep_texts="all")
        cost = [sum(line["row_forwards"] for line in answers.lines) for answers in (some, full)]
        assert cost[0] < cost[1], name
        for mine, whole in zip(some.lines, full.lines, strict=True):
            for c, w in zip(mine["candidates"], whole["candidates"], strict=True):
                assert c["token_ids"] == w["token_ids"][: len(c["token_ids"])]


def test_killed_it_goes_on_with_the_same_answers(
    options: dict[str, Any], head: Path, tmp_path: Path, interrupted_at: Any
) -> None:
    whole = answer(options, tmp_path / "whole", head=str(head), policy="sequential", mean_k=2)
    with interrupted_at(7):
        answer(options, tmp_path / "killed", head=str(head), policy="sequential", mean_k=2)
    kept = tmp_path / "killed/answers.jsonl"
    kept.write_bytes(kept.read_bytes()[:-9])
    again = answer(options, tmp_path / "killed", head=str(head), policy="sequential", mean_k=2)
    assert again.decoded == 35
    assert again.lines == whole.lines
    assert answer(options, tmp_path / "killed", head=str(head), policy="sequential", mean_k=2).decoded == 0
    with pytest.raises(ConfigError, match="begun with seed=0"):
        answer(options, tmp_path / "killed", head=str(head), policy="sequential", mean_k=2, seed=1)


def test_a_folder_goes_on_with_its_own_head_only(options: dict[str, Any], head: Path, tmp_path: Path) -> None:
    """The file's name may be the same, its numbers are not."""
    file = tmp_path / "head.safetensors"
    file.write_bytes(head.read_bytes())
    answer(options, tmp_path / "out", head=str(file), num_prompts=4)
    kept = SuccessHead.load(file)
    replace(kept, weight=-kept.weight).save(file)
    with pytest.raises(ConfigError, match="begun with another head: .* holds another head than then"):
        answer(options, tmp_path / "out", head=str(file), num_prompts=4)


def test_a_folder_goes_on_with_its_own_weights_only(
    options: dict[str, Any], head: Path, toy: Path, tmp_path: Path
) -> None:
    """The path of a checkpoint that is trained on may be the same."""
    shutil.copytree(toy / "one", tmp_path / "policy")
    given = {**options, "model": str(tmp_path / "policy"), "head": str(head)}
    answer(given, tmp_path / "out", num_prompts=4)
    shutil.copytree(tmp_path / "out", tmp_path / "old")
    (tmp_path / "old/model.json").unlink()  # an earlier version kept none
    model, _ = load_policy(tmp_path / "policy")
    for parameter in model.parameters():
        parameter.data.mul_(1.01)
    model.save_pretrained(tmp_path / "policy")
    with pytest.raises(ConfigError, match="begun with num_prompts=4"):
        answer(given, tmp_path / "out", num_prompts=8)
    for folder in ("out", "old"):
        lines = (tmp_path / folder / "answers.jsonl").read_text().splitlines()
        (tmp_path / folder / "answers.jsonl").write_text("".join(line + "\n" for line in lines[:2]))
    with pytest.raises(ConfigError, match="begun with a model whose weights_digest is"):
        answer(given, tmp_path / "out", num_prompts=4)
    assert answer(given, tmp_path / "old", num_prompts=4).decoded == 2


def test_the_embedded_policy_needs_a_task(options: dict[str, Any], tmp_path: Path) -> None:
    """Without a reward too, where nobody asks who scores; nothing is sought on the hub."""
    with pytest.raises(ConfigError, match=r"the embedded policy is a task's own, and '.*data.jsonl' is no task: name"):
        answer({"data": options["data"]}, tmp_path, select="majority")


def test_deepconf_answers_by_its_own_vote(options: dict[str, Any], head: Path, tmp_path: Path) -> None:
    own = {"warmup": 2, "window": 2, "interval": 1, "keep": 50.0}
    config = BestOfConfig(data=options["data"], policy="deepconf", policy_options=own)
    assert (config.select, config.deciding()["select"]) == ("confident", "confident")
    assert BestOfConfig(data=options["data"], policy="deepconf", head=str(head)).select == "value-end"
    answers = answer(options, tmp_path, policy="deepconf", policy_options=own, keep_texts="all")
    silent = 0
    for line in answers.lines:  # where nobody has an answer the most confident is taken
        whole = {j: c for j, c in enumerate(line["candidates"]) if c["state"] != "abandoned"}
        if any(answer_key(c["text"]) is not None for c in whole.values()):
            continue
        silent += 1
        lowest = {j: lowest_group_confidence(c["values"], 2) for j, c in whole.items()}
        assert lowest[line["chosen"]] == pytest.approx(max(lowest.values()), abs=1e-5)
    assert silent > 20


def test_adaptive_k_keeps_the_budget(options: dict[str, Any], head: Path, tmp_path: Path) -> None:
    lines = answer(options, tmp_path / "a", head=str(head), mean_k=2).lines
    counts = [line["k"] for line in lines]
    assert sum(counts) == 80
    assert len(set(counts)) > 1


def test_without_a_head_or_a_reward(options: dict[str, Any], tmp_path: Path) -> None:
    """Votes and DeepConf need no head; a file of prompts needs nobody who scores."""
    voted = answer(options, tmp_path / "votes", select="majority")
    assert voted.accuracy is not None
    assert [note.partition(" prompts have ")[2] for note in voted.notes] == [
        "no candidate with an answer in <answer> tags or \\boxed{}, so select majority had no votes to count there"
    ]
    silent = {name: value for name, value in options.items() if name != "reward"}
    answers = answer(silent, tmp_path / "silent", select="majority")
    assert answers.accuracy is None
    assert [line["answer"] for line in answers.lines] == [line["answer"] for line in voted.lines]
    own = {"warmup": 2, "window": 2, "interval": 1, "keep": 50.0}
    confident = answer(options, tmp_path / "deepconf", select="majority", policy="deepconf", policy_options=own)
    assert sum(line["abandoned"] for line in confident.lines) > 0
    agreed = answer(options, tmp_path / "esc", select="majority", policy="esc", policy_options={"window": 2})
    # These texts hold no answer, so they never agree, and all are drawn.
    assert [line["row_forwards"] for line in agreed.lines] == [line["row_forwards"] for line in voted.lines]
    assert sum(line["steps"] for line in agreed.lines) > sum(line["steps"] for line in voted.lines)


def test_the_options_name_every_policy_and_choice() -> None:
    options = options_of(BestOfConfig)
    assert all(f"{name!r}" in options["policy"].describe() for name in POLICIES)
    assert all(f"{name!r}" in options["select"].describe() for name in CHOICES)
    assert all(f"{name!r}" in options_of(EndpointConfig)["rule"].describe() for name in RULES)
    with pytest.raises(ConfigError, match=r"got 'seqential' \(did you mean 'sequential'\?\)"):
        BestOfConfig(data="x", policy="seqential")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"policy": "prune"}, "policy 'prune' needs a success head"),
        ({"mean_k": 2, "select": "majority"}, "mean_k needs a success head"),
        ({}, "select 'value-end' needs a success head: add --head, or --select majority"),
        ({"policy": "best"}, "policy must be 'none', 'prune', "),
        ({"select": "oracle"}, "select must be 'value-end', "),
        ({"select": "confident"}, "select 'confident' is the vote of policy deepconf, got policy 'none'"),
        ({"policy_options": {"tau": 1}}, "has no option 'tau'"),
        ({"num_generations": 0}, "num_generations must be"),
        (
            {"policy": "esc", "num_generations": 4, "select": "majority"},
            "window=5 and num_generations=4; raise num_generations or lower",
        ),
    ],
)
def test_options_that_dont_go_together(options: dict[str, Any], tmp_path: Path, change: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        answer(options, tmp_path, **change)


def test_a_head_of_another_tokenizer_is_refused(options: dict[str, Any], head: Path, toy: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="fitted on a model whose tokenizer is"):
        answer({**options, "model": str(toy / "other")}, tmp_path, head=str(head))


def test_the_command(options: dict[str, Any], head: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert SuccessHead.load(head).states == (0.0, 1.0)
    status = main(
        [
            *("bestof", options["data"], "--model", options["model"], "--reward", options["reward"]),
            *(
                "--head",
                str(head),
                "--policy",
                "early-stop",
                "--policy_options.threshold",
                "0.5",
                "--num_generations",
                "4",
            ),
            *("--max_completion_length", "8", "--num_prompts", "10", "--out", str(tmp_path / "out")),
        ]
    )
    assert status == 0
    assert "10 prompts, policy early-stop, at most 4 candidates: mean reward" in capsys.readouterr().out
    assert len((tmp_path / "out/answers.jsonl").read_text().splitlines()) == 10
    line = json.loads((tmp_path / "out/answers.jsonl").read_text().splitlines()[0])
    assert {"id", "prompt", "answer", "chosen", "value_end", "row_forwards", "steps", "rewards"} <= set(line)
