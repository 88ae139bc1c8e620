"""A whole profile with a real model: resumed, extended, refused, joined."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from rollwise.errors import ConfigError, RewardError, RollwiseError, StateFileError
from rollwise.profiling.analysis import fit_pass_rates, outcomes_of, true_shares
from rollwise.profiling.config import ProfileConfig
from rollwise.profiling.display import show
from rollwise.profiling.profile import Profile, run_profile

QUIET = Console(file=io.StringIO())


def profile(options: dict[str, Any], out: Path, **changed: Any) -> Profile:
    return run_profile(ProfileConfig(**{**options, "out": str(out), **changed}), console=QUIET)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_the_numbers_are_those_of_the_rollouts(options: dict[str, Any], tmp_path: Path) -> None:
    numbers = profile(options, tmp_path).numbers
    groups = lines(tmp_path / "groups.jsonl")
    assert sorted(g["id"] for g in groups) == sorted(row["id"] for row in lines(tmp_path / "pass_rates.jsonl"))
    rates = {g["id"]: np.mean([r for r in g["rewards"] if r is not None]) for g in groups}
    for row in lines(tmp_path / "pass_rates.jsonl"):
        rate = pytest.approx(rates[row["id"]])
        assert [row["pass_rate"], row["mean_score"], 1.0 - row["difficulty"]] == [rate] * 3
    assert numbers["pass_rate"]["mean"] == pytest.approx(np.mean(list(rates.values())))
    shares = numbers["shares"]
    assert shares["hopeless"]["count"] == sum(rate == 0 for rate in rates.values()) > 0
    assert sum(share["count"] for share in shares.values()) == 24 == sum(numbers["histogram"])
    assert numbers["tokens"]["spent"] == sum(sum(g["tokens"]) for g in groups)
    assert numbers["tokens"]["epoch_rollouts"] == 24 * 4
    assert numbers["tokens"]["truncated"] == np.mean([cut for g in groups for cut in g["truncated"]])
    assert set(numbers["categories"]) == {"k0", "k1", "k2"}
    assert sum(line["prompts"] for line in numbers["categories"].values()) == 24
    assert 0 < numbers["estimate"]["effective"]["share"] < 1
    assert json.loads((tmp_path / "profile.json").read_text()) == numbers
    pyarrow = pytest.importorskip("pyarrow.parquet")
    assert pyarrow.read_table(tmp_path / "pass_rates.parquet").to_pylist() == lines(tmp_path / "pass_rates.jsonl")


def test_interrupted_anywhere_it_ends_the_same(
    options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopped before, in and after a line is written; the folder is the same to the byte."""
    from rollwise.sampling.folder import SampleFolder

    straight = profile(options, tmp_path / "straight")
    append, calls = SampleFolder.append, 0

    def stop_at_the_third(self: Any, groups: list[Any]) -> None:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise KeyboardInterrupt
        append(self, groups)

    out = tmp_path / "stopped"
    monkeypatch.setattr(SampleFolder, "append", stop_at_the_third)
    with pytest.raises(KeyboardInterrupt):
        profile(options, out)
    monkeypatch.undo()
    whole = (out / "groups.jsonl").read_bytes()
    assert len(whole.splitlines()) == 8
    (out / "groups.jsonl").write_bytes(whole[:-30])  # the last line torn
    resumed = profile(options, out)
    assert resumed.numbers == straight.numbers
    for name in ("groups.jsonl", "pass_rates.jsonl", "profile.json"):
        assert (out / name).read_bytes() == (straight.path / name).read_bytes()


def test_a_larger_sample_goes_on_and_other_options_are_refused(options: dict[str, Any], tmp_path: Path) -> None:
    small = profile(options, tmp_path, num_prompts=9)
    kept = (tmp_path / "groups.jsonl").read_text()
    assert small.numbers["sampled"] == 9
    assert all(line["prompts"] == 3 for line in small.numbers["categories"].values())
    shares = small.numbers["shares"]["hopeless"]
    assert shares["low"] < shares["share"] < shares["high"]
    whole = profile(options, tmp_path)
    assert whole.numbers["sampled"] == 24
    assert (tmp_path / "groups.jsonl").read_text().startswith(kept)
    again = profile(options, tmp_path, num_prompts=9, batch_size=8, steps=None, planned_generations=8)
    assert again.numbers["histogram"] == small.numbers["histogram"]
    for name, value in (("num_generations", 4), ("temperature", 0.5), ("seed", 1), ("max_completion_length", 3)):
        with pytest.raises(ConfigError, match=f"was begun with {name}="):
            profile(options, tmp_path, **{name: value})
    assert (tmp_path / "groups.jsonl").read_text().startswith(kept)


def test_other_data_or_another_reward_is_refused(options: dict[str, Any], toy: Path, tmp_path: Path) -> None:
    for name in ("data.jsonl", "rewards.py"):
        (tmp_path / name).write_bytes((toy / name).read_bytes())
    options |= {
        "data": str(tmp_path / "data.jsonl"),
        "reward": f"{tmp_path / 'rewards.py'}:begins_low",
        "num_prompts": 4,
    }
    profile(options, tmp_path / "out")
    (tmp_path / "rewards.py").write_text((tmp_path / "rewards.py").read_text() + "\n")
    with pytest.raises(ConfigError, match="begun with reward_hash="):
        profile(options, tmp_path / "out")
    (tmp_path / "rewards.py").write_bytes((toy / "rewards.py").read_bytes())
    with open(tmp_path / "data.jsonl", "a") as file:
        file.write('{"prompt": "1+1=", "threshold": 3, "kind": "k0"}\n')
    with pytest.raises(ConfigError, match="begun with data_hash="):
        profile(options, tmp_path / "out")


def test_rollouts_of_two_sets_of_weights_are_not_mixed(options: dict[str, Any], toy: Path, tmp_path: Path) -> None:
    """Trained on at the same path, between a kill and the same command; also asked for judgments afterwards."""
    policy, out = tmp_path / "policy", tmp_path / "out"
    shutil.copytree(toy / "one", policy)
    options |= {"model": str(policy), "num_prompts": 6}
    profile(options, out)
    kept = (out / "groups.jsonl").read_bytes()
    shutil.copyfile(toy / "other" / "model.safetensors", policy / "model.safetensors")
    for more in ({"num_prompts": 12}, {"judge": 2}):
        with pytest.raises(ConfigError, match="begun with a model whose weights_digest is '.*', now it is '.*'; its"):
            profile(options, out, **more)
    assert (out / "groups.jsonl").read_bytes() == kept
    (out / "model.json").unlink()  # as an earlier version left it
    assert profile(options, out, num_prompts=12).numbers["sampled"] == 12


def test_before_the_first_rollout_is_kept_options_may_change(options: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="too long for the model's context of 48 tokens"):
        profile(options, tmp_path, max_completion_length=44)
    assert profile(options, tmp_path, num_prompts=4).numbers["sampled"] == 4


@pytest.mark.parametrize("beside", ["metrics.jsonl", "rollouts.jsonl", "lock"])
def test_the_options_of_something_else_are_not_overwritten(
    options: dict[str, Any], tmp_path: Path, beside: str
) -> None:
    """A run can be resumed by its `config.yaml` alone."""
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "config.yaml").write_text("curriculum: recommended\n")
    (folder / beside).write_text("")
    with pytest.raises(ConfigError, match=rf"is not a profile's folder: .* with {beside}; choose another --out"):
        profile(options, folder, num_prompts=4)
    assert (folder / "config.yaml").read_text() == "curriculum: recommended\n"
    assert {path.name for path in folder.iterdir()} == {"config.yaml", beside}


def test_damage_is_named(options: dict[str, Any], tmp_path: Path) -> None:
    profile(options, tmp_path, num_prompts=4)
    groups = tmp_path / "groups.jsonl"
    before = groups.read_text()
    groups.write_text("{}\n" + before)
    with pytest.raises(StateFileError, match="line 1 is damaged"):
        profile(options, tmp_path)
    groups.write_text(before)
    (tmp_path / "config.yaml").unlink()
    with pytest.raises(StateFileError, match="config.yaml"):
        profile(options, tmp_path)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("[None] * len(completions)", "gave None for all 32 rollouts of the first batch"),
        ("[float('nan')] * len(completions)", "must be finite"),
        ("[7] * len(completions)", "outside \\[0, 1\\]"),
        ("columns['gold']", "raised KeyError\\('gold'\\)"),
    ],
)
def test_rewards_that_can_not_be_used(options: dict[str, Any], tmp_path: Path, body: str, reason: str) -> None:
    (tmp_path / "bad.py").write_text(f"def bad(completions, **columns):\n    return {body}\n")
    with pytest.raises(RewardError, match=reason):
        profile(options, tmp_path / "out", reward=f"{tmp_path / 'bad.py'}:bad", reward_high=1.0)
    assert profile(options, tmp_path / "out", num_prompts=4).numbers["sampled"] == 4  # nothing stands in the way


def test_a_prompt_that_is_never_scored_is_left_out(options: dict[str, Any], tmp_path: Path) -> None:
    body = "[None if p == '3+3=' else 1.0 for p in prompts]"
    (tmp_path / "some.py").write_text(f"def some(prompts, **columns):\n    return {body}\n")
    numbers = profile(options, tmp_path / "out", reward=f"{tmp_path / 'some.py'}:some").numbers
    assert (numbers["unscored"], numbers["sampled"]) == (1, 23)
    assert len(lines(tmp_path / "out/pass_rates.jsonl")) == 23
    assert numbers["recommendation"]["headline"] == "nothing is left to learn here"


def test_graded_rewards_have_contrast_of_their_own(options: dict[str, Any], tmp_path: Path) -> None:
    """Nothing is ever solved, but rewards differ: there is contrast, which no pass rate shows."""
    body = "[0.1 * (c[:1] in '012345') for c in completions]"
    (tmp_path / "some.py").write_text(f"def some(completions, **columns):\n    return {body}\n")
    numbers = profile(options, tmp_path / "out", reward=f"{tmp_path / 'some.py'}:some").numbers
    assert numbers["shares"]["hopeless"]["share"] == 1.0
    assert numbers["estimate"]["effective"]["share"] > 0.3
    assert numbers["estimate"]["effective_by_fit"]["share"] < 0.1
    assert numbers["partial_credit"] > 0


def test_categories_have_the_ratio_of_their_fitted_rates(options: dict[str, Any], tmp_path: Path) -> None:
    """Two rollouts for groups of four: raw rates of 0, 1/2 and 1 would say too little of the parts."""
    body = "[float(i % 2 == (i // 3) % 2) for i, _ in enumerate(prompts)]"
    (tmp_path / "some.py").write_text(f"def some(prompts, **columns):\n    return {body}\n")
    numbers = profile(options, tmp_path / "out", reward=f"{tmp_path / 'some.py'}:some", num_generations=2).numbers
    assert not numbers["estimate"]["effective_measured"]
    groups, rows = lines(tmp_path / "out/groups.jsonl"), lines(Path(options["data"]))
    kinds = {row["prompt"]: row["kind"] for row in rows}
    for kind, line in numbers["categories"].items():
        solved = [[bool(r) for r in g["rewards"]] for g in groups if kinds[g["prompt"]] == kind]
        outcomes, counts = outcomes_of(solved)
        assert line["effective"] == pytest.approx(true_shares(fit_pass_rates(counts, outcomes=outcomes), 4).effective)
    parts = np.mean([line["effective"] for line in numbers["categories"].values()])
    assert parts == pytest.approx(numbers["estimate"]["effective"]["share"], abs=0.15)


def test_suspects_are_listed_with_their_texts(options: dict[str, Any], tmp_path: Path) -> None:
    """A reward that never recognises an answer; recorded answers that are just what is drawn, and not cut off."""
    rows = [{"prompt": f"{i}=", "answer": "7"} for i in range(12)]
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "never.py").write_text("def never(completions, **_):\n    return [0.0 for _ in completions]\n")
    changed = {"data": str(tmp_path / "data.jsonl"), "reward": f"{tmp_path / 'never.py'}:never", "category": None}
    found = profile(options, tmp_path / "out", num_generations=256, **changed)
    numbers = found.numbers
    assert numbers["answers_recorded"] == 12
    assert numbers["n_suspects"] == len(numbers["suspects"]) > 5
    assert {s["kind"] for s in numbers["suspects"]} == {"answer-given"}
    assert [s["rollouts"] for s in numbers["suspects"]] == sorted(s["rollouts"] for s in numbers["suspects"])[::-1]
    assert all("7" in s["text"] for s in numbers["suspects"])
    assert numbers["recommendation"]["headline"].startswith("mend the answers")


def test_what_is_shown(options: dict[str, Any], tmp_path: Path) -> None:
    text = io.StringIO()
    show(profile(options, tmp_path, num_prompts=9).numbers, Console(file=text, width=200))
    shown = text.getvalue()
    for part in (
        *("9 of 24 prompts, 8 rollouts each", "truly hopeless", "effective task ratio", "k2", "an epoch in groups"),
        *("name one with --answer_column", "frontier", "Recommendation:", "rollouts of probes"),
    ):
        assert part in shown


def test_options_that_contradict_one_another(options: dict[str, Any], tmp_path: Path) -> None:
    for changed, reason in (
        ({"task": "countdown"}, "scored by one of the two"),
        ({"reward": None}, "who scores the prompts"),
        ({"data": "countdown"}, "leave out --task and --reward"),
        ({"data": "chess"}, "neither a task"),
        ({"model": "embedded"}, "embedded policy is a task's own"),
        ({"task_options": {"levels": [1]}}, "but no task"),
        ({"reward": None, "reward_high": 2.0}, "describes --reward"),
        ({"num_prompts": 1}, "num_prompts"),
        ({"join": str(tmp_path / "nowhere")}, "finished `rollwise profile`"),
    ):
        with pytest.raises(RollwiseError) as caught:
            profile(options, tmp_path / "out", **changed)
        assert reason in str(caught.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("planned", [2, 16])
def test_a_fitted_ratio_has_its_interval_though_all_prompts_were_rolled_out(
    planned: int, options: dict[str, Any], tmp_path: Path
) -> None:
    """Of 8 rollouts groups of 2 are measured, without an error of sampling; those of 16 are fitted, with an error."""
    text = io.StringIO()
    show(profile(options, tmp_path, planned_generations=planned).numbers, Console(file=text, width=200))
    (line,) = (line for line in text.getvalue().splitlines() if line.startswith(" effective task ratio"))
    assert (" to " in line, "fitted:" in line) == ((True, True) if planned == 16 else (False, False))
