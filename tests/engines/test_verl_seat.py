"""The adapter's bookkeeping against a stand-in of verl's loop; no verl is needed."""

import json
import math
from pathlib import Path
from typing import Any

import datasets
import pytest

import rollwise as rw
from rollwise.cli import main
from rollwise.engines.run_log import RunLog
from rollwise.engines.verl.prompts import make_pool
from rollwise.engines.verl.seat import Heard, Seat
from rollwise.reports.run.report import write_report
from rollwise.runs.reading import read_run
from rollwise.watching.follow import RunFollower
from rollwise.watching.state import take_snapshot


def seat(
    n: int = 12,
    *,
    folder: Path | None = None,
    seed: int = 0,
    silent_after: int = 16,
    expire_after: int = 100,
    **more: Any,
) -> Seat:
    pool = rw.PromptPool(
        ids=[f"p{i}" for i in range(n)], columns={"category": [("even", "odd")[i % 2] for i in range(n)]}
    )
    curriculum = rw.Recommended(pool, seed=seed, expire_after=expire_after)
    log = None if folder is None else RunLog(folder, curriculum, {"engine": "verl", "seed": seed})
    return Seat(curriculum, n_rollouts=4, silent_after=silent_after, log=log, **more)


def rewards_of(ticket: rw.Ticket) -> list[float]:
    good = (int(ticket.prompt_id[1:]) + ticket.step) % 5
    return [float(i < good) for i in range(4)]


def heard(ticket: rw.Ticket, fate: str = "trained") -> Heard:
    return Heard(ticket.id, rewards_of(ticket), [3] * 4, ["a"] * 4, fate)


def train(one: Seat, steps: range, batch: int = 3) -> dict[int, list[str]]:
    """verl's synchronous loop: a batch is asked, sampled and told; then the next."""
    asked = {}
    for step in steps:
        tickets = one.ask(batch)
        asked[step] = [ticket.prompt_id for ticket in tickets]
        one.start(step)
        one.tell(heard(ticket) for ticket in tickets)
        one.finish(step)
    return asked


def lines(folder: Path, name: str = "rollouts") -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / f"{name}.jsonl").read_text().splitlines()]


def test_resumed_asks_as_the_uninterrupted_run(tmp_path: Path) -> None:
    straight = train(seat(folder=tmp_path / "straight"), range(1, 7))
    killed = seat(folder=tmp_path / "killed")
    train(killed, range(1, 4))
    state = json.loads(json.dumps(killed.state_dict()))
    train(killed, range(4, 6))
    resumed = seat(folder=tmp_path / "killed")
    resumed.load_state_dict(state)
    assert train(resumed, range(4, 7)) == {step: straight[step] for step in (4, 5, 6)}
    assert [line["prompt_id"] for line in lines(tmp_path / "killed")] == [id_ for s in straight.values() for id_ in s]
    assert [line["step"] for line in lines(tmp_path / "killed", "metrics")] == [1, 2, 3, 4, 5, 6]
    assert lines(tmp_path / "killed", "metrics")[-1]["rollouts"] == 6 * 3 * 4


def test_schedules_by_tokens_and_coefficients_by_score_are_served() -> None:
    schedule = {"points": [[0, 0.5], [72, 0.1]], "by": "tokens"}
    one = seat()
    pool = rw.PromptPool(ids=one.curriculum.pool.ids)
    one.curriculum = rw.BOTS(pool, forgetting=schedule, implicit="none")
    train(one, range(1, 3))
    assert (one.curriculum.tokens, one.curriculum.scheduled()["forgetting"]) == (
        2 * 3 * 4 * 3,
        0.1,
    )  # 3 tokens a rollout
    one.curriculum = rw.BOTS(pool, adaptive="score", forgetting=0.4)
    for step, passed in ((1, 1), (2, 3), (3, 3)):  # 2 prompts x 2 rollouts
        one.evaluated(step, {"a": [1.0, float(passed > 1)]})
        one.evaluated(step, {"b": [float(passed > 2), 0.0]})
        assert one.curriculum.adaptation.averages.get("score", 0.25) == (0.25 if step < 3 else 0.75)
        one.start(step)
        assert one.curriculum.adaptation.averages["score"] == passed / 4


def test_a_score_that_was_not_told_before_the_save_is_told_after_it() -> None:
    def with_score() -> Seat:
        one = seat()
        one.curriculum = rw.BOTS(rw.PromptPool(ids=one.curriculum.pool.ids), adaptive="score", forgetting=0.4)
        return one

    one, again = with_score(), with_score()
    train(one, range(1, 2))
    one.evaluated(1, {"a": [1.0, 0.0, 0.0, 0.0]})
    again.load_state_dict(json.loads(json.dumps(one.state_dict())))
    again.start(2)
    assert again.curriculum.adaptation.averages == {"score": 0.25}
    assert "score" not in again.state_dict()


def test_open_tickets_come_back(tmp_path: Path) -> None:
    one = seat(keeps_in_flight=True)
    early, now = one.ask(2), one.ask(2)
    one.start(1)
    one.tell(heard(ticket) for ticket in now)
    one.finish(1)
    again = seat(keeps_in_flight=True)
    again.load_state_dict(one.state_dict())
    again.ask(2)
    again.start(2)
    again.tell(heard(ticket) for ticket in early)
    numbers = again.finish(2)
    assert (numbers["curriculum/told"], numbers["curriculum/open"]) == (4, 2)


def test_what_a_synchronous_step_did_not_tell_has_failed(tmp_path: Path) -> None:
    one = seat(folder=tmp_path)
    tickets = one.ask(3)
    one.start(1)
    one.tell([heard(tickets[0])])
    numbers = one.finish(1)
    assert (numbers["curriculum/told"], numbers["curriculum/failed"], numbers["curriculum/open"]) == (3, 8, 0)
    assert [line["fate"] for line in lines(tmp_path)] == ["trained", "failed", "failed"]
    assert all(line["category"] == ("even", "odd")[int(line["prompt_id"][1:]) % 2] for line in lines(tmp_path))


def test_every_fate_is_told(tmp_path: Path) -> None:
    one = seat(folder=tmp_path, keeps_in_flight=True)
    fates = ["trained", "filtered", "stale", "surplus"]
    tickets = one.ask(4)
    one.start(1)
    for ticket, fate in zip(tickets, fates, strict=True):
        one.tell([heard(ticket, fate)])
    numbers = one.finish(1)
    assert numbers["curriculum/told"] == 4
    assert [numbers[f"curriculum/groups_{fate}"] for fate in fates] == [1] * 4
    assert [line["trained"] for line in lines(tmp_path)] == [True, False, False, False]


def test_groups_of_expired_tickets_are_told_and_written(tmp_path: Path) -> None:
    """Two batches ahead with expire_after=1, all are late: no group was written, and the second step's end failed."""
    one = seat(40, folder=tmp_path, keeps_in_flight=True, expire_after=1)
    ahead = one.ask(8)
    for step in (1, 2, 3, 4):
        ahead += one.ask(4)
        now, ahead = ahead[:4], ahead[4:]
        one.start(step)
        one.tell(heard(ticket) for ticket in now)
        numbers = one.finish(step)
    assert (numbers["curriculum/told"], numbers["curriculum/groups_trained"]) == (16, 16)
    assert numbers["curriculum/late"] == 12
    assert len(lines(tmp_path)) == 16
    assert lines(tmp_path, "metrics")[-1]["rollouts"] == 64 == one.curriculum.tokens / 3


def test_refills_belong_to_the_step_that_is_sampled() -> None:
    one = seat()
    first = one.ask(2)
    one.start(1)
    refill = one.ask(1)
    one.tell(heard(ticket) for ticket in [*first, *refill])
    one.finish(1)
    assert [ticket.step for ticket in [*first, *refill, *one.ask(1)]] == [1, 1, 1, 2]


def test_several_batches_a_step_are_one_line(tmp_path: Path) -> None:
    one = seat(folder=tmp_path, keeps_in_flight=True)
    tickets = one.ask(4)
    for part, last in ((tickets[:2], False), (tickets[2:], True)):
        one.start(1)
        one.tell(heard(ticket) for ticket in part)
        one.finish(1, last=last)
    assert [line["curriculum/told"] for line in lines(tmp_path, "metrics")] == [4]
    assert one.ask(1)[0].step == 2


def test_a_good_group_is_taken_beside_bad_ones(caplog: pytest.LogCaptureFixture) -> None:
    one = seat(keeps_in_flight=True)
    good, bad = one.ask(2)
    one.start(1)
    one.tell([Heard("t99", [1.0] * 4), Heard(bad.id, [1.0] * 5), heard(good)])
    one.tell([heard(good)])
    numbers = one.finish(1)
    assert (numbers["curriculum/told"], numbers["curriculum/open"]) == (1, 1)
    refused = {name: n for name, n in numbers.items() if "refused" in name}
    assert sum(refused.values()) == 3
    assert len([record for record in caplog.records if "not taken" in record.message]) == 3


def test_rewards_without_a_number_are_failures(tmp_path: Path) -> None:
    """Their tokens were generated all the same: they once were in no total, and in no log."""
    one = seat(folder=tmp_path)
    (ticket,) = one.ask(1)
    one.start(1)
    one.tell([Heard(ticket.id, [1.0, math.nan, 0.0], [3, 4, 5], ["a", "b", "c"])])
    numbers = one.finish(1)
    assert (numbers["curriculum/rollouts"], numbers["curriculum/failed"]) == (2, 2)
    (line,) = lines(tmp_path)
    assert (line["tokens"], line["texts"]) == ([3, 5, 4, 0], ["a", "c", "b", ""])
    assert line["rewards"][:2] == [1.0, 0.0]
    assert one.curriculum.tokens == lines(tmp_path, "metrics")[0]["tokens"] == 12


def test_rewards_out_of_range_widen_it_unless_it_was_given(caplog: pytest.LogCaptureFixture) -> None:
    one = seat()
    (ticket,) = one.ask(1)
    one.start(1)
    one.tell([Heard(ticket.id, [-1.0, 2.0, 0.0, 1.0])])
    assert one.curriculum.reward_spec == rw.RewardSpec(-1.0, 2.0, 1.0)
    assert "data.rollwise.reward_spec" in caplog.text


def test_feedback_that_never_comes_raises_within_bounded_asks() -> None:
    one = seat(100, silent_after=16, keeps_in_flight=True)
    for _ in range(4):
        one.ask(4)
    with pytest.raises(rw.SilentNoOpError, match="16 prompts were asked and no reward was told"):
        one.ask(4)


def test_groups_that_all_fail_are_no_feedback() -> None:
    one = seat(100, silent_after=16)
    with pytest.raises(rw.SilentNoOpError):
        for step in range(1, 9):
            one.ask(4)
            one.start(step)
            one.finish(step)


def test_too_few_free_prompts_name_the_remedy() -> None:
    one = seat(5, keeps_in_flight=True)
    one.ask(4)
    with pytest.raises(rw.PoolError, match="num_warmup_batches"):
        one.ask(4)


@pytest.mark.usefixtures("no_figures")
def test_the_folder_can_be_reported(tmp_path: Path) -> None:
    train(seat(folder=tmp_path), range(1, 5))
    run = read_run(tmp_path)
    assert run.steps.tolist() == [1, 2, 3, 4]
    assert run.config["engine"] == "verl"
    assert run.rewards == rw.RewardSpec(solved_at=1.0)
    assert "told" in write_report(tmp_path).read_text()
    train(seat(folder=tmp_path, seed=1), range(1, 2))
    assert (tmp_path / "before-1/rollouts.jsonl").exists()


def test_a_run_of_verls_own_command_goes_on_by_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It was said to go on by `trainer.train(...)` in a script, which there is not."""
    train(seat(folder=tmp_path), range(1, 3))
    assert main(["train", "--resume", str(tmp_path)]) == 1
    assert "give verl's own command again with trainer.resume_mode=auto" in capsys.readouterr().err
    follower = RunFollower(tmp_path)
    follower.look()
    assert "verl's own command with" in take_snapshot("run", follower.history, now=1e12).alarms[0]


def test_categories_may_be_numbers(tmp_path: Path) -> None:
    """The first tell raised a TypeError, within verl: levels, say, are whole numbers."""
    for values, written in (([3, 4], "3"), ([["a", "b"], ["c"]], "a | b"), ([["a", 3], ["c"]], "a | 3")):
        pool = rw.PromptPool(ids=["p0", "p1"], columns={"category": values})
        curriculum = rw.Uniform(pool, seed=0)
        folder = tmp_path / written
        train(Seat(curriculum, n_rollouts=4, silent_after=16, log=RunLog(folder, curriculum, {})), range(1, 2), 2)
        assert {line["prompt_id"]: line["category"] for line in lines(folder)}["p0"] == written


def test_evaluations_join_their_step(tmp_path: Path) -> None:
    one = seat(folder=tmp_path)
    one.evaluated(0, {"u0": [1.0, 0.0]})  # before the first ask
    train(one, range(1, 3))
    one.evaluated(2, {"u1": [1.0, 0.0]})
    one.evaluated(2, {"u2": [0.0, 0.0], "u3": [math.nan]})
    run = read_run(tmp_path)
    assert run.steps.tolist() == [0, 1, 2]
    assert run.column("eval/pass@1")[[0, 2]].tolist() == [0.5, 0.25]
    assert run.column("eval/pass@2")[2] == 0.5
    one.evaluated(3, {"u4": [1.0, 0.0, 0.0, 0.0], "u5": [0.0, 0.0, math.nan, math.nan]})
    assert read_run(tmp_path).column("eval/pass@2")[3] == 0.25  # of u4 half of the pairs have the right one
    assert run.column("rollouts").tolist() == [0, 12, 24]


def test_the_config_of_a_command_stays(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("curriculum: recommended\n")
    train(seat(folder=tmp_path), range(1, 3))
    train(seat(folder=tmp_path), range(1, 2))
    assert (tmp_path / "config.yaml").read_text() == "curriculum: recommended\n"
    assert [line["step"] for line in lines(tmp_path, "metrics")] == [1]
    assert not (tmp_path / "before-1").exists()


def rows(**more: Any) -> Any:
    return datasets.Dataset.from_list(
        [
            {
                "prompt": [{"role": "user", "content": str(i)}],
                "ability": "sums",
                "extra_info": {"index": i, "level": float(i)},
                **{name: make(i) for name, make in more.items()},
            }
            for i in range(5)
        ]
    )


def test_columns_by_path() -> None:
    pool = make_pool(rows(), prompt_key="prompt", columns={"difficulty": "extra_info.level", "category": "ability"})
    assert pool.columns["difficulty"].tolist() == [0, 1, 2, 3, 4]
    assert set(pool.columns["category"]) == {"sums"}
    assert pool.prompts[2] == [{"role": "user", "content": "2"}]


def test_ids_are_the_rows_own_or_of_their_content() -> None:
    hashed = make_pool(rows(), prompt_key="prompt", columns={})
    assert hashed.ids[1] == rw.PromptPool.from_records([{"prompt": [{"role": "user", "content": "1"}]}]).ids[0]
    assert make_pool(rows(), prompt_key="prompt", columns={}, id_path="extra_info.index").ids == list("01234")
    assert make_pool(rows(id=lambda i: f"x{i}"), prompt_key="prompt", columns={}).ids[4] == "x4"
    some = make_pool(rows(id=lambda i: f"x{i}" if i > 1 else None), prompt_key="prompt", columns={})
    assert some.ids == [*hashed.ids[:2], "x2", "x3", "x4"]  # once the id "None", refused where two rows had none


@pytest.mark.parametrize("path", ["extra.level", "extra_info.levels"])
def test_a_path_that_leads_nowhere_is_refused(path: str) -> None:
    with pytest.raises(rw.ConfigError, match=r"data.rollwise.columns.difficulty"):
        make_pool(rows(), prompt_key="prompt", columns={"difficulty": path})
