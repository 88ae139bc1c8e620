"""The closed loop of METIS on a CPU: a policy that can't judge at first learns to, and its batches are the better."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from datasets import Dataset
from judging import JudgingGRPO, ToyMETIS
from toys import CONFIGS, make_trainer

import rollwise as rw
from rollwise.judges import CompactFormat
from rollwise.training import CurriculumGRPOTrainer

STEPS, PROMPTS, GROUP = 220, 16, 4


class Letters(CompactFormat):
    """The compact format, for a policy that has never seen it: the first character counts."""

    def context(self, exemplars: Any, candidate: str) -> str:
        return candidate

    def read(self, answer: str) -> float | None:
        return super().read(answer[:1])


class Coin:
    """Half of the prompts are a coin's throw, which no policy can learn; the others are never solved."""

    __name__ = "coin"

    def __init__(self) -> None:
        self.rng = np.random.default_rng(0)

    def __call__(self, prompts: list[str], **_: Any) -> list[float]:
        throws = self.rng.random(len(prompts)) < 0.5
        return [float(p.startswith("coin") and throw) for p, throw in zip(prompts, throws, strict=True)]


@pytest.mark.slow
def test_the_policy_learns_to_judge_and_chooses_better_for_it(tmp_path: Path) -> None:
    """From judgments at random, most of them unreadable, to predictions that know the two kinds apart.

    All is measured on prompts that were drawn whatever was said of them, but for the last claim, which is about those
    that were chosen for what was said.
    """
    CONFIGS[JudgingGRPO] = CONFIGS[CurriculumGRPOTrainer]
    rows = [{"prompt": f"{kind} {i}=", "threshold": 0} for i in range(300) for kind in ("coin", "void")]
    metis = ToyMETIS(seed=0, judge_weight=1.0, candidate_multiplier=4, explore=0.5, rails="off", format=Letters())
    seen: list[Any] = []
    trainer = make_trainer(
        tmp_path,
        kind=JudgingGRPO,
        curriculum=metis,
        dataset=Dataset.from_list(rows),
        reward=Coin(),
        num_generations=GROUP,
        per_device_train_batch_size=PROMPTS * GROUP,
        max_completion_length=4,
        max_steps=STEPS,
        learning_rate=3e-3,
        extra={"group_observers": [seen.append], "max_judgment_length": 2},
    )
    trainer.train()
    first, last = judged(seen[: STEPS // 4]), judged(seen[-STEPS // 4 :])
    assert failure_rate(seen[: STEPS // 4]) > 0.4 > 0.2 > failure_rate(seen[-STEPS // 4 :])
    assert last["reward"] > first["reward"] + 0.1
    assert last["reward"] > last["constant"] + 0.04
    assert last["correlation"] > 0.5
    assert last["chosen"] > 1.5 * last["variance"]


def judged(groups: list[Any]) -> dict[str, float]:
    """Of explored prompts: how good the predictions were; beside it the realised variance of the chosen ones."""
    pairs: dict[str, list[tuple[float, float]]] = {"explore": [], "judged": []}
    for one in groups:
        for ticket, rewards in zip(one.tickets, one.rewards, strict=True):
            if ticket.predicted_variance is not None:
                pairs[ticket.lane].append((ticket.predicted_variance, float(rewards.var())))
    predicted, realised = np.array(pairs["explore"]).T
    return {
        "reward": float(1 - ((4 * (predicted - realised)) ** 2).mean()),
        "constant": float(1 - ((4 * (realised.mean() - realised)) ** 2).mean()),
        "correlation": float(np.corrcoef(predicted, realised)[0, 1]),
        "variance": float(realised.mean()),
        "chosen": float(np.mean([v for _, v in pairs["judged"]])),
    }


def failure_rate(groups: list[Any]) -> float:
    return float(np.mean([one.curriculum["judge_failure_rate"] for one in groups]))


def test_the_lessons_are_of_all_that_was_judged() -> None:
    metis = rw.METIS(rw.PromptPool(ids=[f"p{i}" for i in range(40)]), explore=0.5, rails="off")
    metis.advise([rw.Answer(q.id, "\\boxed{0.1}") for q in metis.consult(8)])
    tickets = metis.ask(8)
    assert sorted(t.lane for t in tickets) == ["explore"] * 4 + ["judged"] * 4
    metis.tell([rw.Outcome(t.id, [1, 0]) for t in tickets])
    assert len(metis.lessons()) == 8
