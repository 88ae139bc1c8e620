"""How well a profile's fit tells the true shares from 8 rollouts of 500 prompts: bias and coverage of its intervals."""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np

from rollwise.profiling.analysis import bootstrap_shares, fit_pass_rates, true_shares

Draw = Callable[[np.random.Generator, int], np.ndarray]
WORLDS: dict[str, Draw] = {
    "Beta(0.3, 0.5)": lambda rng, n: rng.beta(0.3, 0.5, n),
    "Beta(1, 3)": lambda rng, n: rng.beta(1.0, 3.0, n),
    "Beta(0.1, 1)": lambda rng, n: rng.beta(0.1, 1.0, n),
    "75 % at 0, the rest uniform": lambda rng, n: np.where(rng.random(n) < 0.75, 0.0, rng.random(n)),
    "40 % at 0, 20 % at 1, the rest Beta(2, 2)": lambda rng, n: np.where(
        (u := rng.random(n)) < 0.4, 0.0, np.where(u < 0.6, 1.0, rng.beta(2.0, 2.0, n))
    ),
    "40 % at 0, 60 % at 0.2": lambda rng, n: np.where(rng.random(n) < 0.4, 0.0, 0.2),
    "thirds at 0.02, 0.3, 0.97": lambda rng, n: rng.choice([0.02, 0.3, 0.97], n),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--prompts", type=int, default=500)
    parser.add_argument("--rollouts", type=int, default=8)
    parser.add_argument("--group", type=int, default=16, help="more than the rollouts: only the fit can tell")
    parser.add_argument("--times", type=int, default=100)
    options = parser.parse_args()
    print("| pass rates | never solved | p < 0.01 | fitted | covered | effective | fitted | covered |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    for name, draw in WORLDS.items():
        rng = np.random.default_rng(0)
        many = draw(rng, 200_000)
        truth = (many < 0.01).mean(), (1 - many**options.group - (1 - many) ** options.group).mean()
        fitted, covered, never = [], [], []
        for seed in range(options.times):
            solved = rng.binomial(options.rollouts, draw(rng, options.prompts))
            counts = np.bincount(solved, minlength=options.rollouts + 1)
            shares = true_shares(fit_pass_rates(counts), options.group)
            ends = bootstrap_shares(counts, options.group, seed=seed)[:, [0, 2]]
            fitted.append((shares.hopeless, shares.effective))
            covered.append((ends[0] <= np.array(truth) + 1e-9) & (np.array(truth) <= ends[1] + 1e-9))
            never.append(counts[0] / options.prompts)
        (h, e), (sh, se), (ch, ce) = np.mean(fitted, axis=0), np.std(fitted, axis=0), np.mean(covered, axis=0)
        print(
            f"| {name} | {np.mean(never):.2f} | {truth[0]:.2f} | {h:.2f} ± {sh:.2f} | {ch:.0%} | {truth[1]:.3f} | "
            f"{e:.3f} ± {se:.3f} | {ce:.0%} |"
        )


if __name__ == "__main__":
    main()
