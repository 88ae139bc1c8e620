"""Puts a profile's numbers together from what was rolled out: the contents of `profile.json`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from rollwise.answers import recorded_answers
from rollwise.profiling.analysis import (
    bootstrap_shares,
    contrast,
    fit_pass_rates,
    histogram,
    mean_interval,
    outcomes_of,
    pass_rates,
    share_of,
    true_shares,
    wilson,
)
from rollwise.profiling.recommendation import Facts, recommend
from rollwise.profiling.requirements import requirements
from rollwise.profiling.suspects import Suspect, find_suspect
from rollwise.profiling.unequal_groups import unequal_groups
from rollwise.runs.solved import SAME_REWARD
from rollwise.sampling.data import PromptData
from rollwise.tickets.outcome import RewardSpec

SUSPECTS_KEPT = 50
_SAME_SHARE = 1e-6


class Plan(Protocol):
    """What a summary needs of a profile's options: `ProfileConfig`'s."""

    @property
    def source(self) -> str: ...
    @property
    def model(self) -> str: ...
    @property
    def num_generations(self) -> int: ...
    @property
    def answer(self) -> str | None: ...
    @property
    def planned_generations(self) -> int: ...
    @property
    def steps(self) -> int | None: ...
    @property
    def prompts_per_step(self) -> int: ...
    @property
    def seed(self) -> int: ...


class Marks(Protocol):
    """What says which rewards are solved: a `Scorer`."""

    @property
    def spec(self) -> RewardSpec: ...
    def solved(self, reward: float | None) -> bool | None: ...


class Summary:
    """A profile's numbers.

    Args:
        config: The options.
        data: All N prompts.
        groups: The S groups that were rolled out.
        scorer: Says which rewards are solved.
        trained_on: How many of the prompts are trained on; by default all.
    """

    def __init__(
        self,
        config: Plan,
        data: PromptData,
        groups: Sequence[Mapping[str, Any]],
        scorer: Marks,
        trained_on: int | None = None,
    ) -> None:
        self.config, self.data, self.scorer = config, data, scorer
        self.references: Mapping[str, tuple[float, float]] | None = None  # weak and strong, by id, of a join
        self.trained_on = len(data) if trained_on is None else trained_on
        self.groups = [g for g in groups if any(r is not None for r in g["rewards"])]
        self.unscored = len(groups) - len(self.groups)
        self.solved = [[scorer.solved(r) for r in g["rewards"]] for g in self.groups]
        self.rates = pass_rates(self.solved)
        self.rewards = [[r for r in g["rewards"] if r is not None] for g in self.groups]
        self.scores = np.array([scorer.spec.scores(np.mean(r)) for r in self.rewards])
        self.hopeless, self.all_solved = self.rates == 0.0, self.rates == 1.0
        self.chances = self._chances()
        row_of = {id_: row for row, id_ in enumerate(data.ids)}
        self.rows = [row_of[g["id"]] for g in self.groups]

    def to_dict(self) -> dict[str, Any]:
        """Everything, JSON-safe."""
        tokens = self._tokens()
        suspects = self._suspects()
        estimate = self._estimate()
        categories = self._categories()
        answers = [recorded_answers(self.data.rows[row], self.config.answer) for row in self.rows]
        low, high = mean_interval(self.rates, len(self.data))
        advice = recommend(self._facts(tokens, len(suspects), estimate, categories))
        return {
            "data": self.config.source,
            "model": self.config.model,
            "rollouts": self.config.num_generations,
            "group_size": self.config.planned_generations,
            "population": len(self.data),
            "sampled": len(self.groups),
            "unscored": self.unscored,
            "pass_rate": {"mean": float(self.rates.mean()), "low": low, "high": high},
            "mean_score": float(self.scores.mean()),
            **self._histogram(),
            "shares": {
                "solved": asdict(share_of(self.all_solved, len(self.data))),
                "learnable": asdict(share_of(~self.all_solved & ~self.hopeless, len(self.data))),
                "hopeless": asdict(share_of(self.hopeless, len(self.data))),
            },
            "estimate": estimate,
            "unequal_groups": self._unequal_groups(estimate["effective"]["share"]),
            "categories": categories,
            "tokens": tokens,
            "failures": self._failures(),
            "partial_credit": self._partial_credit(),
            "answers_recorded": sum(map(bool, answers)),
            "n_suspects": len(suspects),
            "suspects": [asdict(s) | {"prompt": self.groups[i]["prompt"]} for i, s in suspects[:SUSPECTS_KEPT]],
            "methods": [asdict(line) for line in self._requirements()],
            "recommendation": asdict(advice) | {"reasons": list(advice.reasons)},
        }

    # ---- parts ----

    def _facts(
        self, tokens: dict[str, Any], suspects: int, estimate: dict[str, Any], categories: dict[str, dict[str, Any]]
    ) -> Facts:
        """What the recommendation depends on; visits are those of uniform sampling, at most one a step."""
        config = self.config
        return Facts(
            mean_pass_rate=float(self.rates.mean()),
            effective=estimate["effective"]["share"],
            unsolved=float(self.hopeless.mean()),
            solved=float(self.all_solved.mean()),
            hopeless=estimate["hopeless"]["share"],
            suspects=suspects,
            n_hopeless=int(self.hopeless.sum()),
            truncated=tokens["truncated"] or 0.0,
            categories={name: (line["effective"], line["prompts"]) for name, line in categories.items()},
            visits=config.steps and config.steps * min(config.prompts_per_step / self.trained_on, 1.0),
            embedding="embedding" in self.data.rows[0],
            references=all(
                id_ in (self.references or ()) or row.get("reference_pass_rates") is not None
                for id_, row in zip(self.data.ids, self.data.rows, strict=True)
            ),
            differing=float(np.mean([max(r) - min(r) > SAME_REWARD for r in self.rewards])),
        )

    def _chances(self) -> np.ndarray | None:
        """(S,) of contrast in a group; None where some prompts have too few scored rollouts to tell."""
        if not all(len(rewards) >= self.config.planned_generations for rewards in self.rewards):
            return None
        return np.array([contrast(rewards, self.config.planned_generations) for rewards in self.rewards])

    def _outcomes(self, here: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
        """The outcomes of the groups `here`, to fit pass rates to; see `outcomes_of`."""
        return outcomes_of([self.solved[i] for i in here])

    def _histogram(self) -> dict[str, Any]:
        return {"histogram": histogram(self.rates, self.config.num_generations).tolist()}

    def _effective(self, here: np.ndarray) -> float:
        """The effective task ratio of the groups at `here` (S,): measured if it can be, else by their fitted rates."""
        if self.chances is not None:
            return float(self.chances[here].mean())
        outcomes, counts = self._outcomes(np.flatnonzero(here).tolist())
        return true_shares(fit_pass_rates(counts, outcomes=outcomes), self.config.planned_generations).effective

    @cached_property
    def _weights(self) -> np.ndarray:
        """The distribution of true pass rates, fitted to all groups."""
        outcomes, counts = self._outcomes(range(len(self.solved)))
        return fit_pass_rates(counts, outcomes=outcomes)

    def _estimate(self) -> dict[str, Any]:
        """What is estimated of the true pass rates, and the effective task ratio, each with its interval.

        The ratio is measured where each prompt has a group's scored rollouts at least, partial rewards included; else
        fitted.
        """
        config = self.config
        outcomes, counts = self._outcomes(range(len(self.solved)))
        shares = asdict(true_shares(self._weights, config.planned_generations))
        ends = bootstrap_shares(counts, config.planned_generations, seed=config.seed, outcomes=outcomes)
        fitted = {}
        for i, (name, value) in enumerate(shares.items()):
            low, high = ends[:, i].tolist()
            if high - low < _SAME_SHARE:  # in every resample, as of a kind of prompt that the sample has none of
                low, high = wilson(value * len(self.groups), len(self.groups))
            fitted[name] = {"share": value, "low": low, "high": high}
        if self.chances is not None:
            low, high = mean_interval(self.chances, len(self.data))
            fitted["effective_by_fit"] = fitted["effective"]
            fitted["effective"] = {"share": float(self.chances.mean()), "low": low, "high": high}
        return {**fitted, "effective_measured": self.chances is not None}

    def _unequal_groups(self, effective: float) -> dict[str, Any] | None:
        """Whether groups of different size would pay; None where no prompt is learnable."""
        found = unequal_groups(self._weights, self.config.planned_generations, effective, seed=self.config.seed)
        return None if found is None else asdict(found)

    def _categories(self) -> dict[str, dict[str, Any]]:
        if self.data.categories is None:
            return {}
        of = np.array([self.data.categories[row] for row in self.rows])
        sizes = Counter(self.data.categories)
        tokens = np.array([np.mean(g["tokens"]) for g in self.groups])
        lines: dict[str, dict[str, Any]] = {}
        for name in sorted(set(of.tolist())):
            here = of == name
            lines[name] = {
                "prompts": int(here.sum()),
                "population": sizes[name],
                "pass_rate": float(self.rates[here].mean()),
                "solved": asdict(share_of(self.all_solved[here], sizes[name])),
                "hopeless": asdict(share_of(self.hopeless[here], sizes[name])),
                "effective": self._effective(here),
                "tokens": float(tokens[here].mean()),
            }
        return lines

    def _tokens(self) -> dict[str, Any]:
        tokens = np.array([t for g in self.groups for t in g["tokens"]], dtype=np.float64)
        known = [s for group in self.solved for s in group]  # None where a rollout was not scored
        solved, failed = (np.array([s is not None and bool(s) is wanted for s in known]) for wanted in (True, False))
        truncated = np.array([cut for g in self.groups for cut in g["truncated"]])
        epoch = len(self.data) * self.config.planned_generations
        return {
            "mean": float(tokens.mean()),
            "of_solved": float(tokens[solved].mean()) if solved.any() else None,
            "of_failed": float(tokens[failed].mean()) if failed.any() else None,
            "truncated": float(truncated.mean()) if truncated.size else None,
            "spent": int(tokens.sum()),
            "epoch_rollouts": epoch,
            "epoch_tokens": float(tokens.mean() * epoch),
        }

    def _failures(self) -> dict[str, int]:
        """Why rollouts failed, on hopeless prompts, where the task tells."""
        named = [g["failures"] for g, lost in zip(self.groups, self.hopeless, strict=True) if lost and "failures" in g]
        return dict(Counter(why for whys in named for why in whys if why).most_common())

    def _partial_credit(self) -> int:
        """Hopeless prompts some rollout of which earned more than the least: read by the reward, but not right."""
        least = self.scorer.spec.low + self.scorer.spec.slack
        return sum(bool(lost) and max(r) > least for r, lost in zip(self.rewards, self.hopeless, strict=True))

    def _suspects(self) -> list[tuple[int, Suspect]]:
        """Suspicious prompts with their places, those first of which more rollouts show it."""
        found = []
        order = {"answer-given": 0, "answer-within": 1, "all-agree": 2}
        for i in np.flatnonzero(self.hopeless).tolist():
            group = self.groups[i]
            rolled = (group["texts"], group["rewards"], group["truncated"] or None)
            recorded = recorded_answers(self.data.rows[self.rows[i]], self.config.answer)
            suspects = [one for answer in recorded if (one := find_suspect(group["id"], answer, *rolled)) is not None]
            if suspects:
                found.append((i, min(suspects, key=lambda one: order[one.kind])))
        return sorted(found, key=lambda at: (order[at[1].kind], -at[1].rollouts))

    def _requirements(self) -> list[Any]:
        pool = self.data.pool()
        added: dict[str, Any] = {}
        if len(self.groups) == len(self.data):
            rate_of = dict(zip((g["id"] for g in self.groups), self.rates.tolist(), strict=True))
            added["difficulty"] = [1.0 - rate_of[id_] for id_ in self.data.ids]
            if self.references is not None and all(id_ in self.references for id_ in self.data.ids):
                added["reference_pass_rates"] = [self.references[id_] for id_ in self.data.ids]
        return requirements(
            pool,
            added,
            self._rates_of_all(),
            group_size=self.config.planned_generations,
            prompts_per_step=self.config.prompts_per_step,
            steps=self.config.steps,
            seed=self.config.seed,
        )

    def _rates_of_all(self) -> np.ndarray:
        """(N,) pass rates: those measured; for the other prompts, one drawn from those of the sample."""
        rng = np.random.Generator(np.random.PCG64(self.config.seed))
        rates = rng.choice(self.rates, size=len(self.data))
        rates[self.rows] = self.rates
        return np.asarray(rates)
