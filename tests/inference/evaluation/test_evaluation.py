"""The evaluation as a whole, with a decoder that needs no model."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_decoder import LIMIT, STATES, FakeDecoder, judge

from rollwise.errors import ConfigError, StateFileError
from rollwise.inference.evaluation.calibration import Scored, calibration_report
from rollwise.inference.evaluation.settings import EvaluationConfig, settings_of
from rollwise.inference.evaluation.study import Evaluation
from rollwise.inference.head.spec import HeadSpec

SMALL: dict[str, Any] = {
    "limit": LIMIT, "num_generations": 4, "thresholds": (0.4,), "taus": (0.8,), "betas": (0.05,),
    "sequential_betas": (0.1,), "mean_ks": (2,), "windows": (2,), "confidences": (0.8,), "keeps": (50.0,),
    "resamples": 100, "live": "prune 0.4, blend 2/0.4",
}  # fmt: skip


def make(out: Path, decode: FakeDecoder, **changes: Any) -> Evaluation:
    given = {"about": {"model": "fake"}, "confident": None}
    given |= {name: changes.pop(name) for name in ("about", "confident", "digests", "check") if name in changes}
    config = EvaluationConfig(**SMALL | changes)
    return Evaluation(out, config, decode=decode, judge=judge, states=STATES, **given)


def by_name(found: dict[str, Any]) -> dict[str, Any]:
    return {policy["name"]: policy for policy in found["policies"]}


def test_the_default_grid_is_the_paper_s_scaled_to_the_limit() -> None:
    config = EvaluationConfig(limit=1024)
    assert (config.warmup, config.interval) == (128, 32)
    assert (EvaluationConfig(limit=18).warmup, EvaluationConfig(limit=18).interval) == (2, 1)
    names = [setting.name for setting in settings_of(config)]
    assert len(names) == len(set(names)) == len({setting.key for setting in settings_of(config)})
    utilities = {"utility 0.002", "utility-at-once 0.1", "utility-one-by-one 0.05"}
    assert utilities | {"none", "prune 0.5", "early-stop 0.95", "blend 4/0.5"} <= set(names)
    assert not any(
        "adaptive-K" in setting.name for setting in settings_of(EvaluationConfig(limit=64, num_generations=1))
    )


def test_the_whole_evaluation_says_what_its_runs_show(tmp_path: Path) -> None:
    decode = FakeDecoder()
    evaluation = make(tmp_path, decode)
    found = evaluation.run()
    policies = by_name(found)
    none, prune, blend = policies["none"], policies["prune 0.4"], policies["blend 2/0.4"]

    # The full run again, by hand: all candidates' tokens, and the best-valued one's answer.
    cost, right = [], []
    for seed in (0, 1, 2):
        for i in range(12):
            drawn = [decode.candidate(seed, i, j) for j in range(4)]
            cost.append(sum(len(tokens) for tokens, _, _ in drawn))
            right.append(max(drawn, key=lambda one: one[1][-16:].mean())[2])
    assert none["row_forwards"]["mean"] == pytest.approx(np.mean(cost))
    assert none["accuracy"]["mean"] == pytest.approx(np.mean(right))
    assert none["saving"]["value"] == 0.0
    assert found["best_of"][-1]["accuracy"]["mean"] == pytest.approx(none["accuracy"]["mean"])
    assert found["best_of"][-1]["row_forwards"] == pytest.approx(none["row_forwards"]["mean"])
    assert none["matched"]["difference"]["value"] == pytest.approx(0.0)
    # The vote of all K is that of the peer, which does not see the head; by its values ties would be decided better.
    assert found["best_of"][-1]["majority"] == pytest.approx(policies["majority"]["accuracy"]["mean"])

    assert prune["saving"]["value"] == pytest.approx(1 - prune["row_forwards"]["mean"] / none["row_forwards"]["mean"])
    assert prune["saving"]["low"] <= prune["saving"]["value"] <= prune["saving"]["high"]
    assert blend["row_forwards"]["mean"] < policies["adaptive-K 2"]["row_forwards"]["mean"]
    assert prune["matched"]["row_forwards"] == pytest.approx(prune["row_forwards"]["mean"])

    # Live runs of what was asked for, and the baseline: they spend and answer as replayed, and have seconds.
    assert {name for name, policy in policies.items() if policy["live"]} == {"none", "prune 0.4", "blend 2/0.4"}
    for name in ("none", "prune 0.4", "blend 2/0.4"):
        assert policies[name]["live"]["as_replayed"] == 1.0
    assert prune["live"]["wall_s"]["mean"] == pytest.approx(12 * prune["row_forwards"]["mean"] / 1000)
    assert len(decode.calls) == 3 + 9

    # The first success of each prompt, by hand.
    spent, reached = [], []
    for seed in (0, 1, 2):
        for i in range(12):
            drawn = [decode.candidate(seed, i, j) for j in range(4)]
            until = next((j for j in range(4) if drawn[j][2]), 3)
            spent.append(sum(len(drawn[j][0]) for j in range(until + 1)))
            reached.append(any(good for *_, good in drawn))
    assert found["ceiling"]["saving"] == pytest.approx(1 - sum(spent) / sum(cost))
    assert found["ceiling"]["accuracy"] == pytest.approx(np.mean(reached))

    points = {(point["objective"], point["family"]): point for point in found["held_out"]}
    assert len(points) == 2 * 15  # any, 11 families with a head, 3 without: nobody decodes for deepconf here
    assert {fold["setting"] for fold in points["row_forwards", "prune"]["folds"]} <= {"none", "prune 0.4"}
    assert json.loads((tmp_path / "evaluation.json").read_text())["prompts"] == 12


def test_each_setting_says_where_it_loses_prompts(tmp_path: Path) -> None:
    """By hand for none: a prompt with a success among its four; given up and missed add up; the blend's levers."""
    decode = FakeDecoder()
    policies = by_name(make(tmp_path, decode, live="no").run())
    some = [any(decode.candidate(s, i, j)[2] for j in range(4)) for s in (0, 1, 2) for i in range(12)]
    none, prune, blend = policies["none"], policies["prune 0.4"], policies["blend 2/0.4"]
    assert none["lost"]["oracle"] == pytest.approx(np.mean(some))
    assert none["lost"]["given_up"]["value"] == 0.0
    assert none["lost"]["keep_rate"] == policies["adaptive-K 2"]["lost"]["keep_rate"] == 1.0
    for policy in policies.values():
        lost = policy["lost"]
        missing = lost["given_up"]["value"] + lost["missed"]["value"]
        assert missing == pytest.approx(none["lost"]["oracle"] - policy["accuracy"]["mean"])
    assert 0 < prune["lost"]["keep_rate"] < 1
    left = (1 - prune["saving"]["value"]) * (1 - policies["adaptive-K 2"]["saving"]["value"])
    assert blend["levers"]["product"] == pytest.approx(1 - left)
    assert blend["levers"]["beyond"]["value"] == pytest.approx(blend["saving"]["value"] - (1 - left))
    assert prune["levers"] is None
    # Runs that an earlier version kept, with other rules and without an oracle, are made anew.
    file = tmp_path / "runs.jsonl"
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    old = [
        {name: value for name, value in line.items() if name not in ("oracle", "begun", "carried", "rules")}
        | {"accuracy": [0.0 for _ in line["accuracy"]]}
        for line in lines
    ]
    file.write_text("".join(json.dumps(line) + "\n" for line in old))
    assert by_name(make(tmp_path, FakeDecoder(), live="no").run()) == policies


def test_gamma_is_in_the_grid() -> None:
    twice = EvaluationConfig(limit=64, betas=(0.02,), gammas=(0.0, 0.1, 0.1), mean_ks=(4, 4))
    names = [s.name for s in settings_of(twice)]
    assert len(set(names)) == len(names)
    one_by_one = ["utility-one-by-one 0.02", "utility-one-by-one 0.02+0.1"]
    assert [name for name in names if "utility" in name] == ["utility 0.02", "utility-at-once 0.02", *one_by_one]
    with pytest.raises(ConfigError, match="gamma must be"):
        settings_of(EvaluationConfig(limit=64, gammas=(-0.1,)))


def test_a_head_that_failed_the_gate_is_not_run_live_unless_asked_for(tmp_path: Path) -> None:
    report = {"viability": {"verdict": "failed"}}
    decode = FakeDecoder()
    make(tmp_path / "a", decode, live="front").run(calibration=report)
    assert decode.calls == [("none", 0), ("none", 1), ("none", 2)]  # the full runs
    make(tmp_path / "a", decode, live="prune 0.4").run(calibration=report)
    assert ("prune", 0) in decode.calls


def test_peers_vote_and_need_no_head(tmp_path: Path) -> None:
    """ESC by hand: two candidates; equal answers are taken, else two more, and the majority of the four, whatever a
    head would say of ties."""
    decode, confident = FakeDecoder(), FakeDecoder(confident=True)
    found = make(tmp_path, decode, confident=confident, live="no").run()
    policies = by_name(found)
    cost, right = [], []
    for seed in (0, 1, 2):
        for i in range(12):
            texts = [decode.text(seed, i, j) for j in range(4)]
            drawn = 2 if texts[0] == texts[1] else 4
            cost.append(sum(len(decode.candidate(seed, i, j)[0]) for j in range(drawn)))
            right.append("right" in max(texts[:drawn], key=texts[:drawn].count))  # the first of equals
    assert policies["esc 2"]["row_forwards"]["mean"] == pytest.approx(np.mean(cost))
    assert policies["esc 2"]["accuracy"]["mean"] == pytest.approx(np.mean(right))
    assert policies["majority"]["row_forwards"] == policies["none"]["row_forwards"]
    assert policies["adaptive-consistency 0.8"]["steps"]["mean"] > policies["none"]["steps"]["mean"]
    assert policies["deepconf 50"]["saving"]["value"] > 0
    assert policies["deepconf 50"]["rule"] == "confident"
    assert {name for name, policy in policies.items() if policy["headless"]} == {
        "majority", "esc 2", "adaptive-consistency 0.8", "deepconf 50"
    }  # fmt: skip
    # What needs no head is compared with, and not chosen among what the head is worth.
    chosen = {f["setting"] for p in found["held_out"] if p["family"] == "any" for f in p["folds"]}
    assert not any(policies[name]["headless"] for name in chosen)
    assert confident.calls == []  # the head's full runs carry the confidence along
    # The same again from the files; live as replayed.
    idle = FakeDecoder(confident=True)
    assert by_name(make(tmp_path, FakeDecoder(), confident=idle, live="no").run()) == policies
    assert idle.calls == []
    lived = by_name(make(tmp_path, FakeDecoder(), confident=idle, live="esc 2, deepconf 50").run())
    assert idle.calls == [("deepconf", 0), ("deepconf", 1), ("deepconf", 2)]
    assert all(lived[name]["live"]["as_replayed"] == 1.0 for name in ("esc 2", "deepconf 50"))


def test_adaptive_k_keeps_its_budget_and_gives_more_to_hard_prompts(tmp_path: Path) -> None:
    evaluation = make(tmp_path, FakeDecoder())
    setting = next(s for s in evaluation.settings if s.name == "adaptive-K 2")
    shares = evaluation.shares(setting, 0)
    assert sum(shares) == 24
    assert shares == sorted(shares)  # the fake's prompts get harder
    assert shares[0] < shares[-1]


def test_it_goes_on_where_it_was_killed(tmp_path: Path) -> None:
    make(tmp_path / "whole", FakeDecoder()).run()
    whole = (tmp_path / "whole" / "evaluation.json").read_text()
    decode = FakeDecoder()
    make(tmp_path / "killed", decode, live="no").run()
    assert len(decode.calls) == 3
    with (tmp_path / "killed" / "runs.jsonl").open("a") as file:
        file.write('{"key": "torn')
    (tmp_path / "killed" / "full-2.npz").unlink()  # decoded again, to the same samples
    again = FakeDecoder()
    make(tmp_path / "killed", again).run()
    assert again.calls[0] == ("none", 2)
    assert len(again.calls) == 1 + 9
    assert (tmp_path / "killed" / "evaluation.json").read_text() == whole
    idle = FakeDecoder()
    make(tmp_path / "killed", idle).run()
    assert idle.calls == []
    assert (tmp_path / "killed" / "evaluation.json").read_text() == whole


def test_a_folder_holds_one_evaluation(tmp_path: Path) -> None:
    make(tmp_path, FakeDecoder())
    with pytest.raises(ConfigError, match="whose model is 'fake', not 'another'"):
        make(tmp_path, FakeDecoder(), about={"model": "another"})
    with pytest.raises(ConfigError, match="with --select value-end, not 'majority'"):
        make(tmp_path, FakeDecoder(), select="majority")
    make(tmp_path, FakeDecoder(), thresholds=(0.3,), live="front")  # another grid may join
    (tmp_path / "full-0.npz").write_bytes(b"torn")
    with pytest.raises(StateFileError, match="delete it"):
        make(tmp_path, FakeDecoder()).full(0)
    (tmp_path / "config.json").write_text("null")
    with pytest.raises(StateFileError, match="is not readable"):
        make(tmp_path, FakeDecoder())


def test_a_folder_goes_on_with_the_same_data_reward_and_weights_only(tmp_path: Path) -> None:
    """What an earlier version did not keep is not compared."""
    about, digests = {"model": "fake", "stop": ["."]}, {"reward_hash": "a", "weights_digest": "b"}
    make(tmp_path, FakeDecoder(), about={"model": "fake"})
    file = tmp_path / "config.json"
    before = json.loads(file.read_text())
    del before["digests"]  # as an earlier version left it
    file.write_text(json.dumps(before))
    make(tmp_path, FakeDecoder(), about=about, digests=digests)
    with pytest.raises(ConfigError, match="whose reward_hash is 'a', not 'c'; add --out FOLDER"):
        make(tmp_path, FakeDecoder(), about=about, digests=digests | {"reward_hash": "c"})
    with pytest.raises(ConfigError, match="whose weights_digest is 'b', not 'c'"):
        make(tmp_path, FakeDecoder(), about=about, digests=digests | {"weights_digest": "c"})
    with pytest.raises(ConfigError, match=r"whose stop is \['.'\], not \[\]"):
        make(tmp_path, FakeDecoder(), about=about | {"stop": []}, digests=digests)
    make(tmp_path, FakeDecoder(), about=about, digests=digests)


def test_another_evaluation_is_refused_by_the_names_of_options(tmp_path: Path) -> None:
    make(tmp_path, FakeDecoder(), about={"decoded": 24})
    with pytest.raises(ConfigError, match=r"holds an evaluation with --num_prompts 24, not 10; add --out FOLDER"):
        make(tmp_path, FakeDecoder(), about={"decoded": 10})
    with pytest.raises(ConfigError, match=r"with --select value-end, not 'majority'; add --out FOLDER"):
        make(tmp_path, FakeDecoder(), about={"decoded": 24}, select="majority")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seeds": (0, 1)}, "3 distinct numbers"),
        ({"seeds": (0, 1, 1)}, "3 distinct numbers"),
        ({"select": "oracle"}, "select must be 'value-end', 'majority' or 'weighted-majority', got 'oracle'"),
        ({"warmup": 0}, "warmup"),
        ({"live": "prune 7"}, "no setting 'prune 7'"),
        ({"num_generations": 3}, "k = 3 candidates"),
    ],
)
def test_bad_options(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make(tmp_path, FakeDecoder(), **changes).run()


def scored(rollouts: int = 8) -> Scored:
    """The fake's rollouts of seed 0, and a joint at the prompt that knows the chance of success and no length."""
    decode, spec = FakeDecoder(), HeadSpec(edges=(0, 16, 32, 64))
    drawn = [(i, *decode.candidate(0, i, j)) for i in range(12) for j in range(rollouts)]
    chance = np.array([decode.candidate(0, i, 0)[1][0] for i in range(12)])
    return Scored(
        spec=spec,
        prompt=np.array([i for i, *_ in drawn]),
        rewards=np.array([float(good) for *_, good in drawn]),
        values=[values for _, _, values, _ in drawn],
        remaining=[np.arange(len(tokens), 0, -1.0) for _, tokens, _, _ in drawn],
        joints=np.stack([1 - chance, chance], axis=1)[:, :, None] / np.full(3, 3.0),
        answers=[str(good) for *_, good in drawn],
    )


def test_the_calibration_report_holds_every_measure() -> None:
    """Lengths are predicted exactly: correlation 1. Values drift to the outcome: AUC near 1 at the end only."""
    found = calibration_report(scored(), steps=(0, 6), prune_step=6, k=4)
    assert found["rollouts"] == 96
    assert found["length_correlation"] == pytest.approx(1.0)
    assert found["auc_end"]["within"] > 0.9
    at_prompt, later = found["auc_at"]
    assert at_prompt["pooled"] == found["auc_prompt"]
    assert at_prompt["within"] == 0.5  # V(x) is the same for all of a prompt's
    assert later["within"] > 0.6
    assert found["gate"] == {"step": 6, "within": later["within"], "verdict": "aggressive"}
    assert found["joint"]["floor"] < found["joint"]["head"]
    assert found["end"]["always_positive"]["accuracy"] == found["base_rate"]
    assert found["end"]["brier"] < found["end"]["brier_baseline"]
    assert found["selection"]["accuracy"]["oracle"] >= found["selection"]["accuracy"]["value-end"]
    assert found["spread"]["pearson"] > 0.5
    # 8 rollouts a prompt hold no group of 16.
    assert calibration_report(scored(), steps=(), prune_step=6, k=16)["selection"] is None


def test_the_value_at_a_prompt_tells_none_of_its_rollouts_from_others() -> None:
    """A batch rounds otherwise than the next one, here in favour of what succeeds: V(x) is one number all the same."""
    exact = scored()
    rounded = [values + 1e-9 * good * (np.arange(len(values)) == 0)
               for values, good in zip(exact.values, exact.rewards, strict=True)]  # fmt: skip
    found = calibration_report(replace(exact, values=rounded), steps=(0,), prune_step=6, k=4)
    assert found["auc_at"][0]["within"] == 0.5
    assert found["auc_prompt"] == found["auc_at"][0]["pooled"]
    assert found["auc_prompt"] == calibration_report(exact, steps=(0,), prune_step=6, k=4)["auc_prompt"]


def test_the_gate_chooses_as_the_decoder_does() -> None:
    """Of each prompt's two the better valued is wrong and was cut off, so that the other, which is right, is chosen."""
    p, two = np.array([0, 0, 1, 1]), [np.full(3, v) for v in (0.9, 0.2, 0.7, 0.4)]
    spec, joints = HeadSpec(edges=(0, 4)), np.full((2, 2, 1), 0.5)
    one = Scored(spec, p, np.array([0.0, 1, 0, 1]), two, two, joints, truncated=[True, False] * 2)
    found = calibration_report(one, steps=(), prune_step=1, k=2)["viability"]
    assert (found["value"], found["random"], found["verdict"]) == (1.0, 0.5, "passed")


def three_states(middle: float, **changes: Any) -> Scored:
    """Rollouts that succeed with their prompt's chance p, which the head knows; a failure gets the middle reward."""
    rng, prompts, n = np.random.default_rng(0), 50, 4000
    prompt = np.arange(n) % prompts
    chances = (np.arange(prompts) + 0.5) / prompts
    p = chances[prompt]
    joints = np.zeros((prompts, 3, 1))
    joints[:, 1, 0], joints[:, 2, 0] = 1 - chances, chances
    values = [np.array([v]) for v in p + (1 - p) * middle]
    given: dict[str, Any] = {
        "spec": HeadSpec(rewards=(0, middle, 1), edges=(0, 4)),
        "prompt": prompt,
        "rewards": np.where(rng.random(n) < p, 1.0, middle),
        "values": values,
        "remaining": [np.ones(1)] * n,
        "joints": joints,
        "beliefs": list(joints.sum(-1)[prompt]),
    }
    return Scored(**given | changes)


def test_partial_rewards_are_no_part_of_a_success() -> None:
    """A head that knows the chance of success is calibrated, whatever failures are worth; chance p has Brier 1/6."""
    reports = [calibration_report(three_states(m), steps=(0,), prune_step=0, k=1) for m in (0.1, 0.5)]
    for part in ("end", "prompt"):
        assert reports[0][part] == reports[1][part]
        assert reports[0][part]["ece"] < 0.02
        assert reports[0][part]["brier"] == pytest.approx(1 / 6, abs=0.01)
    # A success from .5 on: then all of them are.
    found = calibration_report(three_states(0.5), steps=(0,), prune_step=0, k=1, solved_at=0.5)
    assert (found["end"]["brier"], found["base_rate"]) == (0.0, 1.0)
    # No state reaches 2: the highest stands for it, and nobody got there.
    found = calibration_report(three_states(0.5), steps=(0,), prune_step=0, k=1, solved_at=2.0)
    assert found["end"]["brier"] == pytest.approx(1 / 3, abs=0.01)
    with pytest.raises(ConfigError, match="values of 3 reward states don't tell the chance of success: give beliefs"):
        three_states(0.5, beliefs=())


def test_calibration_of_two_states_is_of_the_values() -> None:
    """Whether or not their chances are given."""
    plain = calibration_report(scored(), steps=(0,), prune_step=6, k=4)
    unit = scored().values_end
    good = scored().rewards >= 1
    assert plain["end"]["brier"] == float(np.mean((unit - good) ** 2))
    assert plain["prompt"]["brier"] == float(np.mean((scored().first_values - good) ** 2))


def test_calibration_of_one_prompt_that_always_fails_says_so_instead_of_failing() -> None:
    spec = HeadSpec(edges=(0, 16))
    values = [np.array([0.5, 0.2])] * 3
    one = Scored(spec, np.zeros(3, int), np.zeros(3), values, values, np.full((1, 2, 1), 0.5))
    found = calibration_report(one, steps=(0,), prune_step=1)
    assert found["joint"] is None
    assert found["gate"]["verdict"] == "unknown"
    assert math.isnan(found["auc_end"]["pooled"])
    with pytest.raises(ConfigError, match="M >= 1"):
        Scored(spec, np.zeros(0, int), np.zeros(0), [], [], np.zeros((0, 2, 1)))
