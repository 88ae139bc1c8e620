"""The tables behind the papers' figures, from a *simulated* learner: BOTS Figures 2, 3 and 7, SEC Figure 3.

    python benchmarks/figure_shapes.py [--figures rho lambda heatmap sec] [--seeds 5] [--prompts 6800] [--steps 100]
                                       [--regimes default good-references quick-learner] [--out folder]

Means over thirds of training, and their standard deviation over seeds. BOTS trains a 1.5B model for 100 steps of 256 of
54,400 prompts, 16 rollouts each (appendix B): here an eighth of both, by default. SEC trains for 240 steps of 8
rollouts. Which method wins depends on how well the references guide and how quickly the learner moves: hence regimes.
`--out` also draws them (needs matplotlib).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

import rollwise as rw
from rollwise.simulation import Learner, Population, SimulationLog, heatmap, make_world, parts, simulate

Methods = dict[str, Callable[[], rw.Curriculum]]
UNIFORM: Methods = {"uniform": lambda: rw.Uniform()}
_SWEEP = (0, 0.05, 0.1, 0.2, 0.5, 1)
RHO: Methods = {f"rho={r:g}": lambda r=r: rw.BOTS(implicit_weight=r, rails=None) for r in _SWEEP}
LAMBDA: Methods = {f"lambda={r:g}": lambda r=r: rw.BOTS(forgetting=r, rails=None) for r in _SWEEP}
SEC: Methods = {f"SEC tau={tau:g}": lambda tau=tau: rw.SEC(temperature=tau, rails=None) for tau in (0.2, 0.4, 1.0)}
PROMPTS_A_BATCH = 54_400 / 256
REGIMES = {
    "default": (Population(), Learner()),
    "good-references": (Population(reference_noise=1.0), Learner()),
    "quick-learner": (Population(reference_noise=1.0), Learner(learning_rate=1.5)),
}
SEC_LEARNER = Learner(learning_rate=0.3, advantage="std")  # GRPO, as SEC trains
SEC_POPULATION = Population(levels=4, easiest=0.0, hardest=6.0, spread=0.7, hopeless=0.0, trivial=0.0)
COLUMNS: dict[str, Callable[[SimulationLog], np.ndarray]] = {
    "effective ratio": lambda log: log.effective_ratio,
    "share of p=0": lambda log: log.all_bad,
    "share of p=1": lambda log: log.all_good,
    "score": lambda log: log.score,
}


def runs(methods: Methods, options: argparse.Namespace, regime: str) -> dict[str, list[SimulationLog]]:
    """BOTS's setting: each method on each seed; a seed makes the prompts, the rollouts and the curriculum's draws."""
    batch = max(1, round(options.prompts / PROMPTS_A_BATCH))
    logs: dict[str, list[SimulationLog]] = {name: [] for name in methods}
    population, learner = REGIMES[regime]
    for seed in range(options.seeds):
        world, _ = make_world(options.prompts, population=population, learner=learner, seed=seed)
        for name, make in methods.items():
            logs[name].append(simulate(_seeded(make, seed), world.fresh(), options.steps, batch, 16))
    return logs


def sec_runs(options: argparse.Namespace) -> dict[str, list[SimulationLog]]:
    """SEC's setting: levels of difficulty, 2 epochs, groups of 8."""
    logs: dict[str, list[SimulationLog]] = {name: [] for name in {**UNIFORM, **SEC}}
    for seed in range(options.seeds):
        world, _ = make_world(3000, population=SEC_POPULATION, learner=SEC_LEARNER, seed=seed)
        for name, make in {**UNIFORM, **SEC}.items():
            logs[name].append(simulate(_seeded(make, seed), world.fresh(), 240, 24, 8))
    return logs


def _seeded(make: Callable[[], rw.Curriculum], seed: int) -> rw.Curriculum:
    curriculum = make()
    curriculum.seed = seed  # unbound still: its streams are made when it is bound
    return curriculum


def cell(series: list[np.ndarray]) -> str:
    """`0.12 0.34 0.56 ± 0.01`: thirds of training, and the greatest deviation over seeds of the three."""
    thirds = np.array([parts(values) for values in series])
    return " ".join(f"{mean:.2f}" for mean in thirds.mean(axis=0)) + f" ± {thirds.std(axis=0).max():.2f}"


def table(title: str, logs: dict[str, list[SimulationLog]], columns: dict[str, Callable[..., np.ndarray]]) -> None:
    print(f"\n{title}\n")
    print(f"| | {' | '.join(columns)} | last score |\n|---|{'--:|' * (len(columns) + 1)}")
    for name, of_seeds in logs.items():
        cells = [cell([get(log) for log in of_seeds]) for get in columns.values()]
        last = np.array([log.final_score for log in of_seeds])
        print(f"| {name} | {' | '.join(cells)} | {last.mean():.3f} ± {last.std():.3f} |", flush=True)


def bands(title: str, logs: dict[str, list[SimulationLog]]) -> None:
    """Figure 7 in five bands."""
    columns: dict[str, Callable[..., np.ndarray]] = {
        "0/16": lambda log: heatmap(log)[:, 0],
        "1 to 3": lambda log: heatmap(log)[:, 1:4].sum(axis=1),
        "4 to 12": lambda log: heatmap(log)[:, 4:13].sum(axis=1),
        "13 to 15": lambda log: heatmap(log)[:, 13:16].sum(axis=1),
        "16/16": lambda log: heatmap(log)[:, 16],
    }
    table(title, logs, columns)


def draw(path: Path, logs: dict[str, list[SimulationLog]], columns: dict[str, Callable[..., np.ndarray]]) -> None:
    """One panel a column, one curve a method: means over seeds, smoothed over nine steps."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, panels = plt.subplots(1, len(columns), figsize=(4.5 * len(columns), 3.5), squeeze=False)
    for panel, (title, get) in zip(panels[0], columns.items(), strict=True):
        for name, of_seeds in logs.items():
            mean = np.mean([get(log) for log in of_seeds], axis=0)
            panel.plot(np.convolve(mean, np.ones(9) / 9, mode="valid"), label=name)
        panel.set(title=title, xlabel="step")
    panels[0][-1].legend(fontsize=7)
    figure.suptitle("simulated learner", fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    plt.close(figure)


def draw_heatmaps(path: Path, logs: dict[str, list[SimulationLog]]) -> None:
    """BOTS, Figure 7: one panel a method."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, panels = plt.subplots(len(logs), 1, figsize=(7, 2.5 * len(logs)), squeeze=False)
    for panel, (name, of_seeds) in zip(panels[:, 0], logs.items(), strict=True):
        mean = np.nanmean([heatmap(log) for log in of_seeds], axis=0)
        panel.imshow(mean.T, origin="lower", aspect="auto", vmin=0.0, vmax=0.5)
        panel.set(title=name, xlabel="step", ylabel="successes of 16")
    figure.suptitle("simulated learner", fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    figures = ("rho", "lambda", "heatmap", "sec")
    parser.add_argument("--figures", nargs="+", default=list(figures), choices=figures)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--prompts", type=int, default=6800)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--regimes", nargs="+", default=list(REGIMES), choices=list(REGIMES), help="of BOTS's figures")
    parser.add_argument("--out", type=Path, help="folder for PNGs")
    options = parser.parse_args()
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
    print(f"a simulated learner; {options.seeds} seeds; each cell: three thirds of training ± deviation over seeds")
    for regime in options.regimes:
        for figure, methods in {"rho": RHO, "lambda": LAMBDA}.items():
            if figure in options.figures:
                logs = runs({**UNIFORM, **methods}, options, regime)
                table(f"{regime}: {figure} (BOTS, Figure {2 if figure == 'rho' else 3})", logs, COLUMNS)
                if options.out:
                    draw(options.out / f"{regime}-{figure}.png", logs, COLUMNS)
        if "heatmap" in options.figures:
            logs = runs({**UNIFORM, "BOTS": lambda: rw.BOTS(rails=None)}, options, regime)
            bands(f"{regime}: successes of 16 (BOTS, Figure 7)", logs)
            if options.out:
                draw_heatmaps(options.out / f"{regime}-heatmap.png", logs)
    if "sec" in options.figures:
        level: dict[str, Callable[..., np.ndarray]] = {
            "mean level of 4": lambda log: log.category_share @ np.arange(1, 5),
            "effective ratio": lambda log: log.effective_ratio,
            "score": lambda log: log.score,
            "score, hardest level": lambda log: log.category_scores[:, -1],
        }
        logs = sec_runs(options)
        table("SEC (Figure 3)", logs, level)
        if options.out:
            draw(options.out / "sec.png", logs, level)


if __name__ == "__main__":
    sys.exit(main())
