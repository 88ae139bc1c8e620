"""Two gloo ranks measure and screen alike, with groups that can't be shared out evenly, and resume exactly."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from toys import toy_model

TOY_WEIGHTS = sum(weight.numel() for weight in toy_model().parameters())


@pytest.mark.parametrize("name", ["lilo", "speed"])
@pytest.mark.slow
def test_two_ranks_probe_and_train_on_the_same_groups(name: str, two_processes: Callable[[str], Path]) -> None:
    folder = two_processes(name)
    first, second = json.loads((folder / "straight.json").read_text())
    assert first["parameters"] == second["parameters"]
    assert second["groups"] == []
    assert first["kept"] == second["kept"]
    for i, groups in enumerate(first["groups"]):
        assert first["texts"][i] + second["texts"][i] == groups["texts"]
        assert first["advantages"][i] + second["advantages"][i] == pytest.approx(groups["advantages"])
    purposes = {purpose for g in first["groups"] for purpose in g["purposes"]}
    assert purposes == ({"measure"} if name == "lilo" else {"screen"})
    assert any(g["padding"] for g in first["groups"]) == (name == "speed")  # 15 groups of 3 rollouts, of 8 none
    if name == "speed":
        assert {lane for g in first["groups"] for lane in g["lanes"]} >= {"continue"}
        assert any(g["waited"] for g in first["groups"])

    lines = [json.loads(line) for line in (folder / "run/rollouts.jsonl").read_text().splitlines()]
    metrics = [json.loads(line) for line in (folder / "run/metrics.jsonl").read_text().splitlines()]
    padding = sum(m.get("padding_rollouts", 0) for m in metrics)
    assert metrics[-1]["rollouts"] == sum(len(line["rewards"]) for line in lines) + padding
    assert metrics[-1]["rollouts"] % 2 == 0

    uses = {use: sum(m.get(f"compute/{use}", 0) for m in metrics) for use in ("read", "generated", "scored", "trained")}
    assert uses["generated"] == metrics[-1]["tokens"]  # of both ranks, padding included; before and after a resume
    forward = uses["read"] + uses["generated"] + uses["scored"]
    assert metrics[-1]["flops"] == 2 * TOY_WEIGHTS * forward + 6 * TOY_WEIGHTS * uses["trained"]

    resumed = json.loads((folder / "resumed.json").read_text())
    assert {rank["parameters"] for rank in resumed} == {first["parameters"]}
    assert resumed[0]["groups"] == first["groups"][3:]
    assert resumed[0]["curriculum"] == first["curriculum"]
    assert resumed[0]["kept"] == resumed[1]["kept"] == first["kept"]
