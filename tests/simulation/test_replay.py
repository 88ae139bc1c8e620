"""Replay of a log, against numbers worked out by hand and against the run that was logged."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rollwise as rw
from rollwise.runs.past_columns import Columns
from rollwise.simulation import ReplayWorld, read_log, simulate, smoothing
from rollwise.simulation.config import SimulateConfig
from rollwise.simulation.replay import gamma_draw
from rollwise.simulation.run_log import RunLog
from rollwise.simulation.runs import check
from rollwise.simulation.smoothing import BANDWIDTHS, POOLINGS, Smoothing, kernel, log_likelihood

RUN = Path(__file__).parent / "data/uniform-run"


def write_run(folder: Path, groups: list[dict[str, Any]]) -> Path:
    folder.mkdir()
    (folder / "metrics.jsonl").write_text('{"step": 1}\n')
    rows = [{"ticket": f"t{i}", "lane": "uniform", **group} for i, group in enumerate(groups)]
    (folder / "rollouts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


GROUPS = [
    {"step": 1, "prompt_id": "a", "category": "x", "rewards": [1, 0, 0.1, 0.1]},
    {"step": 1, "prompt_id": "b", "category": "x", "rewards": [0, 0, 0, 0]},
    {"step": 3, "prompt_id": "a", "category": "x", "rewards": [1, 1, 1, None]},
    {"step": 3, "prompt_id": "c", "category": "y", "rewards": [1, 1, 1, 1]},
]


def test_a_log_is_read(tmp_path: Path) -> None:
    log = read_log(write_run(tmp_path / "run", GROUPS))
    assert (log.ids, log.category, log.levels.tolist()) == (["a", "b", "c"], ["x", "x", "y"], [0.0, 0.1, 1.0])
    assert (log.slot.tolist(), log.step.tolist()) == ([0, 1, 0, 2], [1, 1, 3, 3])
    assert log.counts.tolist() == [[1, 2, 1], [4, 0, 0], [0, 0, 3], [0, 0, 4]]
    assert (log.steps, log.batch, log.group_size, log.effective_ratio) == (3, 2, 4, 0.25)


def test_a_log_is_read_by_what_its_run_called_solved(tmp_path: Path) -> None:
    """Rewards 0 to 10, solved at 8: scores are tenths, and 8 and 9 of prompt a's four rollouts are solved."""
    groups = [{"step": 1, "prompt_id": "a", "category": "x", "rewards": [8, 9, 4, 0]}]
    folder = write_run(tmp_path / "run", groups)
    assert read_log(folder).levels.tolist() == pytest.approx([0, 4 / 9, 8 / 9, 1])  # guessed: the greatest is 1
    assert read_log(folder).solved_at == 1.0
    (folder / "rewards.json").write_text('{"low": 0, "high": 10, "solved_at": 8}')
    log = read_log(folder)
    assert log.levels.tolist() == [0.0, 0.4, 0.8, 0.9]
    assert log.solved_at == 0.8
    world = ReplayWorld(log)
    assert world.success_rates(np.array([0]))[0] == pytest.approx(world.rates(np.array([0]))[0, 2:].sum())


def test_contrast_of_a_log_is_that_of_its_rewards_not_of_rounded_ones(tmp_path: Path) -> None:
    """Of 25 groups with rewards n/25 and n/25 + 0.001, which 21 levels round to the same but once, none was mixed."""
    groups = [{"step": 1 + n, "prompt_id": str(n), "rewards": [n / 25, n / 25 + 0.001 * (n > 4)]} for n in range(25)]
    log = read_log(write_run(tmp_path / "run", groups))
    assert (len(log.levels), log.effective_ratio, log.contrast_until(10)) == (21, 0.8, 0.5)


def test_the_counts_by_hand(tmp_path: Path) -> None:
    """Bandwidth 2: a group 2 steps away counts exp(-1/2) = .6065. Prompt a at step 1: (1, 2, 1) + .6065 (0, 0, 3).

    Category x at step 1: (1+4, 2, 1) + .6065 (0, 0, 3) = (5, 2, 2.8196), of 9.8196: (.5092, .2037, .2871), times a
    pooling of 2: (1.0184, .4073, .5743). So a: (2.0184, 2.4073, 3.3939), and c, not seen at 1: .6065 * 4 + 2 of 1.
    """
    world = ReplayWorld(read_log(write_run(tmp_path / "run", GROUPS)), bandwidth=2.0, pooling=2.0)
    counts = world.counts(np.array([0, 2]), 1)
    assert counts[0].tolist() == pytest.approx([2.0184, 2.4073, 3.3939], abs=2e-4)
    assert counts[1].tolist() == pytest.approx([0.0, 0.0, 4.4261], abs=2e-4)


def test_bandwidth_and_pooling_are_fitted_and_what_is_given_stays(tmp_path: Path) -> None:
    """4 groups of 3 prompts in 3 steps: 3 / (4 / 3) = 2.25 steps from a visit to the next."""
    log = read_log(write_run(tmp_path / "run", GROUPS))
    assert ReplayWorld(log).smoothing.bandwidth in [2.25 * width for width in BANDWIDTHS]
    given = ReplayWorld(log, bandwidth=7.0, pooling=3.0)
    assert (given.smoothing.bandwidth, given.pooling) == (7.0, 3.0)
    assert ReplayWorld(log, bandwidth=7.0).pooling in POOLINGS


def test_the_likelihood_of_a_group_that_is_left_out_by_hand(tmp_path: Path) -> None:
    """Prompt a, bandwidth 2, pooling 2: (1, 2, 1) at step 1 has 0.6065 (0, 0, 3) of its other group, and of category x
    without it (4, 0, 1.8196), of 5.8196: 2 (.6873, 0, .3127). So (1.3747, 0, 2.4449), the zero being 3.4e-10: the
    likelihood is 1.3747 * 3.4e-10 * 1.0 * 2.4449 / (3.8196 4.8196 5.8196 6.8196).
    """
    near, less = Smoothing(read_log(write_run(tmp_path / "run", GROUPS)), 2.0), np.array([[1, 2, 1]])
    others = near.of_prompts(np.array([0]), np.array([1])) - less
    shares = near.shares(np.array([0]), np.array([1]), less=less)
    assert others[0].tolist() == pytest.approx([0.0, 0.0, 1.8196], abs=1e-4)
    assert shares[0].tolist() == pytest.approx([0.6873, 0.0, 0.3127], abs=1e-4)
    hand = np.log(1.3746 * 3.4367e-10 * 2.4450 / (3.8196 * 4.8196 * 5.8196 * 6.8196))
    assert log_likelihood(less, others + 2.0 * shares) == pytest.approx(hand, abs=1e-3)


@pytest.mark.parametrize("visits", [1, 4])
@pytest.mark.parametrize("kind", ["alike", "half hopeless", "most near 0 or 1"])
def test_a_replay_has_the_contrast_of_its_log(kind: str, visits: int) -> None:
    """With one pseudo-rollout prompts that are alike had 0.38 instead of 0.56, and one in five a contrast above 0.9."""
    rng = np.random.default_rng(3)
    rates = {
        "alike": np.full(960, 0.1),
        "half hopeless": np.where(np.arange(960) % 2, 0.0, 0.5),
        "most near 0 or 1": rng.beta(0.4, 0.4, 960),
    }[kind]
    slot = np.concatenate([rng.permutation(960) for _ in range(visits)])
    solved, step = rng.binomial(8, rates[slot]), np.arange(len(slot)) // 32 + 1
    log = RunLog(
        [str(i) for i in range(960)], [""] * 960, ["all"] * 960, {}, slot, step, np.stack([8 - solved, solved], axis=1),
        np.array([0.0, 1.0]), (solved > 0) & (solved < 8), int(step.max()), 32, 8, "centred",
    )  # fmt: skip
    world, found = ReplayWorld(log, seed=0), []
    for now in range(1, log.steps + 1):
        world.step = now
        found += (np.ptp(world.rollout(slot[step == now], 8), axis=1) > 0).tolist()
    assert np.mean(found) == pytest.approx(log.effective_ratio, abs=0.045)
    if kind == "alike":
        assert world.pooling >= 64
        rate = np.sort(world.success_rates(np.arange(960)))[-192:]
        assert (1 - rate**8 - (1 - rate) ** 8).mean() < 0.72


def test_a_long_log_does_not_hold_all_pairs_of_its_steps(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """6 pairs at once are rows of the 4 x 4 pairs of steps 0 to 3, three times; the shares are the same."""
    log = read_log(write_run(tmp_path / "run", GROUPS))
    whole = ReplayWorld(log, bandwidth=2.25, pooling=1.0).counts(np.arange(3), 2)
    sizes: list[int] = []
    monkeypatch.setattr(smoothing, "MOST_PAIRS", 6)
    monkeypatch.setattr(smoothing, "kernel", lambda apart, h: sizes.append(apart.size) or kernel(apart, h))
    again = read_log(tmp_path / "run")  # a log's smoothing is kept
    assert ReplayWorld(again, bandwidth=2.25, pooling=1.0).counts(np.arange(3), 2) == pytest.approx(whole, rel=1e-12)
    assert sizes[1:] == [8, 4, 4]


def test_gamma_draws_are_distributed_as_they_should_and_continuous() -> None:
    """Mean and variance of Gamma(a) are a and a."""
    rng = np.random.default_rng(0)
    normal, uniform = rng.standard_normal(200_000), rng.random(200_000)
    for shape in (0.2, 1.0, 8.0):
        drawn = gamma_draw(np.full(200_000, shape), normal, uniform)
        assert (drawn.mean(), drawn.var()) == (pytest.approx(shape, rel=0.03), pytest.approx(shape, rel=0.06))
    near = gamma_draw(np.array([2.0, 2.0001]), normal[:1].repeat(2), uniform[:1].repeat(2))
    assert 0.0 < abs(near[1] - near[0]) < 1e-3
    assert kernel(np.array([4.0]), 2.0)[0] == pytest.approx(np.exp(-2.0))


def test_a_prompt_stays_what_it_is_and_moves_with_the_log() -> None:
    world = ReplayWorld(read_log(RUN), seed=1)
    slots = np.arange(40)
    first, again = world.success_rates(slots), world.success_rates(slots)
    world.train(slots, np.zeros((40, 8)))
    second = world.success_rates(slots)
    world.step = 100
    last = world.success_rates(slots)
    assert np.array_equal(first, again)
    assert 0.0 < np.abs(second - first).max() < 0.2
    assert last.mean() > first.mean()  # the logged policy got better
    assert not np.allclose(ReplayWorld(world.log, seed=2).success_rates(slots), first)


def test_replayed_uniform_sampling_has_the_contrast_of_the_log() -> None:
    log = read_log(RUN)
    assert (len(log.ids), log.steps, log.group_size, log.levels.tolist()) == (40, 100, 8, [0.0, 0.1, 1.0])
    replayed = [
        np.nanmean(simulate(rw.Uniform(seed=s), ReplayWorld(log, seed=s), 100, 2, 8).effective_ratio) for s in range(5)
    ]
    assert np.mean(replayed) == pytest.approx(log.effective_ratio, abs=0.06)


def test_replay_finds_contrast_and_no_score() -> None:
    log = read_log(RUN)
    run = simulate(rw.PrioritizedReplay(), ReplayWorld(log), 100, 2, 8)
    assert np.nanmean(run.effective_ratio) > log.effective_ratio + 0.1
    assert np.isnan(run.score).all()
    assert np.isnan(run.final_score)


def test_a_run_that_chose_its_prompts_is_refused(tmp_path: Path) -> None:
    chosen = write_run(tmp_path / "run", [{**GROUPS[0], "lane": "priority"}])
    with pytest.raises(rw.ConfigError, match="not made with uniform sampling.*'priority'"):
        read_log(chosen)
    with pytest.raises(rw.ConfigError, match="no rollouts with a reward"):
        read_log(write_run(tmp_path / "empty", [{**GROUPS[0], "rewards": [None]}]))
    with pytest.raises(rw.StateFileError, match="nowhere"):
        read_log(tmp_path / "nowhere")


def test_rewards_of_other_ranges_and_continuous_ones(tmp_path: Path) -> None:
    """-1 and 3 become 0 and 1, and 1 becomes .5. Of 50 values the nearest of 21 levels count: .51 is nearest to .5."""
    signed = read_log(write_run(tmp_path / "signed", [{**GROUPS[0], "rewards": [-1, 3, 1]}]))
    assert signed.levels.tolist() == [0.0, 0.5, 1.0]
    many = read_log(write_run(tmp_path / "many", [{**GROUPS[0], "rewards": [*np.linspace(0, 1, 50).tolist(), 0.51]}]))
    assert len(many.levels) == 21
    assert many.counts.sum() == 51
    assert many.counts[0, 10] == 3  # .4898, .5102 and .51


def test_columns_that_all_prompts_have(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", GROUPS)
    assert sorted(ReplayWorld(read_log(run)).pool.columns) == ["category"]
    known = {
        "a": {"category": ["x", "far"], "difficulty": 1, "note": "n"},
        "b": {"category": "x", "difficulty": 2},
        "c": {"category": "y", "difficulty": 3, "note": "n"},
        "never asked for": {},
    }
    rows = [json.dumps({"step": 1, "prompt_id": id_, "columns": columns}) for id_, columns in known.items()]
    (run / "prompts.jsonl").write_text("\n".join(rows))
    pool = ReplayWorld(read_log(run)).pool
    assert sorted(pool.columns) == ["category", "difficulty"]
    assert pool.columns["difficulty"].tolist() == [1.0, 2.0, 3.0]
    assert pool.codes("category")[0] == ["x", "x | far", "y"]


def test_columns_that_a_run_is_said_to_have_are_refused(tmp_path: Path) -> None:
    """They had no effect: another reward than the run's, or one that is not there, was replayed as if not named."""
    run = write_run(tmp_path / "run", GROUPS)
    with pytest.raises(rw.ConfigError, match="is a run's folder, whose columns are known; leave reward_column out"):
        read_log(run, Columns(reward_column="format"))
    assert read_log(run, Columns()).fingerprint == read_log(run).fingerprint


def test_a_prompt_measured_is_no_group_of_the_log(tmp_path: Path) -> None:
    measured = {**GROUPS[1], "purpose": "measure", "lane": "probe"}
    assert len(read_log(write_run(tmp_path / "run", [GROUPS[0], measured])).ids) == 1


def test_the_batch_of_a_gated_run_is_that_of_a_round(tmp_path: Path) -> None:
    """Two prompts a step, and in step 1 a second round of two."""
    rows = [{**GROUPS[0], "step": 1, "prompt_id": name} for name in "abcd"] + [{**GROUPS[0], "step": 2}]
    run = write_run(tmp_path / "run", rows)
    assert read_log(run).batch == 4
    (run / "config.yaml").write_text("prompts_per_step: 2\ngate: mixed\n")
    assert read_log(run).batch == 2


def test_one_larger_group_does_not_make_all_replayed_groups_larger(tmp_path: Path) -> None:
    """Four groups of 2 and one of 4: replayed with 2, and kept runs with 4 are those of another log."""
    rows = [{"step": 1, "prompt_id": name, "rewards": [0, 1]} for name in "abcd"]
    rows.append({"step": 2, "prompt_id": "a", "rewards": [0, 0, 1, 1]})
    path = tmp_path / "past.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    log = read_log(path)
    assert log.group_size == 2
    assert log.fingerprint != replace(log, group_size=4).fingerprint
    run = write_run(tmp_path / "run", rows)
    (run / "config.yaml").write_text("num_generations: 3\nallocator: knapsack\n")
    assert read_log(run).group_size == 3


def test_other_past_rollouts_are_a_log(tmp_path: Path) -> None:
    """Steps are numbered as they come; of rewards -1 and 3 the scores are 0 and 1."""
    rows = [
        {"t": step, "q": name, "score": score}
        for step, name, scores in ((10, "a", (-1, 3)), (10, "b", (-1, -1)), (40, "a", (3, 3)), (40, "c", (3, -1)))
        for score in scores
    ]
    (tmp_path / "past.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    log = read_log(tmp_path / "past.jsonl", Columns(prompt_column="q", step_column="t"))
    assert (log.prompts, log.category, log.levels.tolist()) == (["a", "b", "c"], ["all"] * 3, [0.0, 1.0])
    assert (log.slot.tolist(), log.step.tolist()) == ([0, 1, 0, 2], [1, 1, 2, 2])
    assert log.counts.tolist() == [[1, 1], [2, 0], [0, 2], [1, 1]]
    assert (log.steps, log.batch, log.group_size, log.effective_ratio) == (2, 2, 2, 0.5)


def test_the_batch_of_past_rollouts_is_that_of_steps_with_rewards(tmp_path: Path) -> None:
    """Of three steps two were not scored: their batch is not 0, which nothing can be divided by. None scored: said."""
    rows = [{"step": s, "prompt": q, "rewards": [0, 1] if s == 2 else [None, None]} for s in (1, 2, 3) for q in "ab"]
    path = tmp_path / "past.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    log = read_log(path)
    assert (log.steps, log.step.tolist(), log.batch) == (3, [2, 2], 2)
    path.write_text("".join(json.dumps({**row, "rewards": [None, None]}) + "\n" for row in rows))
    with pytest.raises(rw.ConfigError, match="no rollout with a reward; name its column: --reward_column"):
        read_log(path)


def test_a_group_of_something_else_in_a_runs_log_is_refused_by_line(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", GROUPS)
    with (run / "rollouts.jsonl").open("a") as file:
        file.write(json.dumps({"step": 4, "prompt": "d", "rewards": [1, 0]}) + "\n")
    with pytest.raises(rw.StateFileError, match=r"rollouts\.jsonl, line 5: no 'ticket'"):
        read_log(run)


def test_methods_without_anything_to_go_by_are_marked(tmp_path: Path) -> None:
    methods = {"sec": {"curriculum": "sec"}, "dump": {"curriculum": "dump"}, "bots": {"curriculum": "bots"}}
    without = [{name: value for name, value in group.items() if name != "category"} for group in GROUPS]
    for name, groups, marked in (("with", GROUPS, set()), ("without", without, {"sec", "dump"})):
        run = write_run(tmp_path / name, groups)
        config = SimulateConfig.from_dict({"replay": str(run), "methods": methods, "seeds": 1})
        assert set(check(config)) == marked
