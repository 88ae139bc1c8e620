"""All methods side by side on a *simulated* learner: contrast, score, what it cost. Minutes, no model.

    python benchmarks/simulated_methods.py [--seeds 5] [--regimes revisit hopeless once graded blocked]
                                           [--methods uniform bots ...] [--steps 100] [--json out.json]

Every run has the same number of rollouts: methods that measure or screen get fewer steps of training. Regimes:

- revisit: 600 prompts, each seen some five times by uniform sampling; a quick learner
- hopeless: 2000 prompts, three quarters of which nobody ever solves
- once: 20,000 prompts, each seen about once in six by uniform sampling
- graded: as revisit, with rewards 0, 0.1 and 1
- blocked: one of five categories can't be solved at all before step 40 (a wrong answer format), then it can

A simulation says how a method behaves where success rates move as item response theory has it. It can't say what a
method is worth for a language model; see docs/measurements.md for both beside each other.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import replace

import numpy as np

import rollwise as rw
from rollwise.simulation import Learner, Population, World, make_world, simulate

BATCH, GROUP = 32, 8
QUICK = Learner(learning_rate=1.5, transfer=0.2)
LEVELS = Population(reference_noise=1.5)
REGIMES: dict[str, tuple[int, Population, Learner]] = {
    "revisit": (600, replace(LEVELS, easiest=-2.0, hardest=5.0), QUICK),
    "hopeless": (2000, replace(LEVELS, hopeless=0.75), QUICK),
    "once": (20_000, LEVELS, QUICK),
    "graded": (600, replace(LEVELS, easiest=-2.0, hardest=5.0), replace(QUICK, rewards="graded")),
    "blocked": (2000, replace(LEVELS, easiest=-2.0, hardest=5.0), QUICK),
}
LEARNED = rw.BOTS(implicit="none", update="told", forgetting=0.5)  # what `Recommended` has without references
METHODS: dict[str, Callable[[], rw.Curriculum]] = {
    "uniform": lambda: rw.Uniform(),
    "ordered": lambda: rw.Ordered(),
    "recommended": lambda: rw.Recommended(),
    "the same, no references": lambda: rw.Mixture(
        lanes={"a": (0.75, rw.Nested(categories=rw.SEC(choice="ucb"), prompts=LEARNED)), "u": (0.25, rw.Uniform())}
    ),
    "prioritized": lambda: rw.PrioritizedReplay(),
    "prioritized, bare": lambda: rw.PrioritizedReplay(rails=None),
    "half and half": lambda: rw.Mixture(lanes={"r": (1, rw.PrioritizedReplay()), "u": (1, rw.Uniform())}),
    "bots": lambda: rw.BOTS(),
    "bots, bare": lambda: rw.BOTS(rails=None),
    "bots, no references": lambda: rw.BOTS(implicit="none"),
    "bots, least squares": lambda: rw.BOTS(capability="least-squares"),
    "bots, adaptive": lambda: rw.BOTS(adaptive=True, capability="least-squares"),
    "bots, kernel": lambda: rw.BOTS(implicit="kernel"),
    "mopps": lambda: rw.MoPPS(),
    "mopps, 0.5": lambda: rw.MoPPS(forgetting=0.5, candidate_multiplier=8),
    "dots": lambda: rw.DOTS(),
    "selector beta variance": lambda: rw.Selector(estimator="beta", forgetting=0.1, sampling="thompson"),
    "selector average prop.": lambda: rw.Selector(draw="proportional"),
    "sec": lambda: rw.SEC(temperature=0.2),
    "sec, ucb": lambda: rw.SEC(choice="ucb"),
    "dump": lambda: rw.DUMP(),
    "nested sec bots": lambda: rw.Nested(categories=rw.SEC(temperature=0.2), prompts=rw.BOTS()),
    "frontier": lambda: rw.FrontierReplay(),
    "frontier, 0.5": lambda: rw.FrontierReplay(replay_ratio=0.5),
    "adarft": lambda: rw.AdaRFT(),
    "adcl": lambda: rw.ADCL(),
    "sfl": lambda: rw.SFL(candidates=256, buffer=64, refresh_every=20),
    "lilo": lambda: rw.LILO(candidates=4 * BATCH),
    "vcrl": lambda: rw.VCRL(),
    "greso": lambda: rw.GRESO(),
    "speed": lambda: rw.SPEED(screen_rollouts=4, screen=2 * BATCH, ready=BATCH),
}


def run(name: str, regime: str, seed: int, steps: int) -> dict[str, float]:
    """One run of one method, as long as the budget of rollouts lasts."""
    n, population, learner = REGIMES[regime]
    world, _ = make_world(n, population=population, learner=learner, seed=seed)
    curriculum = METHODS[name]()
    curriculum.seed = seed  # unbound still: its streams are made when it is bound
    log = simulate(
        curriculum,
        world,
        steps,
        BATCH,
        GROUP,
        most_rollouts=steps * BATCH * GROUP,
        on_step=Blocked(world) if regime == "blocked" else None,
    )
    return {
        "effective ratio": float(np.nanmean(log.effective_ratio)),
        "score": log.final_score,
        "hardest": float(np.nanmin(world.category_scores())),
        "steps": float(len(log.score)),
        "rails cost": curriculum.metrics().get("rails/cost", 0.0),
    }


class Blocked:
    """Nobody can solve the middle category until step 40; then the block is lifted."""

    def __init__(self, world: World) -> None:
        self.items = world.items
        self.middle = world.items.category == len(world.categories) // 2

    def __call__(self, step: int, world: World) -> None:
        difficulty = np.where(self.middle & (step < 40), np.inf, self.items.difficulty)
        world.items = replace(self.items, difficulty=difficulty)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=100, help="of uniform sampling; sets the budget of rollouts")
    parser.add_argument("--regimes", nargs="+", default=list(REGIMES), choices=list(REGIMES))
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--json", help="also write every run here")
    options = parser.parse_args()
    rows = []
    print("SIMULATED. Means over seeds; the score's difference from uniform with its standard deviation, by seed")
    for regime in options.regimes:
        print(
            f"\n{regime}\n"
            f"{'':<26}{'ratio':>8}{'score':>8}{'difference':>18}{'hardest':>9}{'steps':>7}{'rails cost':>11}"
        )
        base: np.ndarray | None = None
        for name in options.methods:
            runs = [run(name, regime, seed, options.steps) for seed in range(options.seeds)]
            rows += [{"regime": regime, "method": name, "seed": s, **r} for s, r in enumerate(runs)]
            score = np.array([r["score"] for r in runs])
            base = score if base is None else base
            mean = {key: float(np.mean([r[key] for r in runs])) for key in runs[0]}
            difference = score - base
            print(
                f"{name:<26}{mean['effective ratio']:>8.3f}{mean['score']:>8.3f}"
                f"{difference.mean():>+10.3f} ± {difference.std(ddof=1) if len(runs) > 1 else 0:.3f}"
                f"{mean['hardest']:>9.3f}{mean['steps']:>7.0f}{mean['rails cost']:>+11.3f}"
            )
            sys.stdout.flush()
    if options.json:
        with open(options.json, "w") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()
