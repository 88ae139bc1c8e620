"""SEC: self-evolving curriculum. A bandit over categories, paid in mean absolute advantage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, Self, Unpack

import numpy as np

from rollwise.curricula.families.arms import (
    ArmBandit,
    belief_sd,
    boltzmann,
    boltzmann_among,
    check_category,
    draw_arms,
    draw_greatest,
    exact,
    highest_bounds,
)
from rollwise.curricula.families.divisions import cluster_limits, crossed, divide_by_limits, quantile_limits
from rollwise.curricula.families.members import ArmMembers, ArmRounds
from rollwise.curricula.families.presets import Presets
from rollwise.curricula.families.rules import (
    CHOICE_RULES,
    GROUP_REWARDS,
    NOT_GRPO,
    TABLE_S1,
    ChoiceRule,
    GroupReward,
    checked_numbers,
    own_rule,
    own_shares,
    rule_name,
)
from rollwise.curricula.seam.base import CoreOptions
from rollwise.errors import ConfigError
from rollwise.moved import present_names
from rollwise.options import Count, Positive, PositiveShare, Range, Schedule, Share, Weight, constructor_names
from rollwise.pool import PromptPool
from rollwise.state import decode_array, decode_strings, encode_array, encode_strings
from rollwise.tickets.evidence import Evidence


class SEC(
    Presets,
    ArmBandit,
    name="sec",
    paper='*Self-Evolving Curriculum*, Algorithm 1, equations 1-4, section 5; METIS\'s variant: `preset="metis"`',
    needs="a `category` column, several (SEC-2D), or `clusters=`, `quantiles=`",
):
    """Chooses a category by a Boltzmann bandit, then a prompt uniformly within it (Algorithm 1).

    Each category has a value that follows its rollouts' mean |A|: Q(c) <- alpha r(c) + (1 - alpha) Q(c), from 0.
    What was decided where the paper is silent or wrong is in docs/decisions.md.

    Args:
        pool: needs `category`, or `embedding` for clusters, or `difficulty` for quantiles.
        category: the column whose values are the categories; several: each combination is one (SEC-2D, section 3.3).
        learning_rate: alpha (table S1: 0.5 in all but one experiment).
        temperature: tau (table S1: 0.2 to 1.0; greater explores more).
        advantage: "std": |r - mean(r)| / std(r), as equations 4 to 6; "centred": not divided; "told": the trainer's
            (Algorithm 1, line 10), as in the presets "rloo" and "ppo"; where none are told, as "centred". Or
            a reward of your own: from the `Evidence` of M groups (M,) numbers; a function, or its `file.py:name`.
        choice: "boltzmann" (section 2.3); "ucb" and "thompson" are future work in section 5. Or your own rule: from the
            values (C,) and numbers of groups (C,) weights (C,) >= 0; a function, or its `file.py:name`.
        ucb_scale: weight of UCB's bonus; 1 is the greatest mean |A| of a group in "std", 0.5 in "centred".
        prior_sd: standard deviation of Thompson's belief about a category never drawn.
        discount: how much a group still counts a step later, in UCB's counts and Thompson's beliefs.
        clusters: make this many categories by k-means over the column `embedding` (section 5).
        quantiles: make this many categories of equal size by the column `difficulty`.
        within: "uniform" draws from all prompts each time (line 6), "exhaust" from those not yet drawn this round.
        one_category: fill a batch from one category, and from another only when that one is used up.
        pool_multiplier: choose a batch of k from this many times k prompts, drawn uniformly; None: from all.

    >>> sec = SEC(PromptPool(ids=["a", "b"], columns={"category": ["easy", "hard"]}), seed=0)
    >>> from rollwise.tickets.outcome import Outcome
    >>> rewards = {"a": [1, 0, 1, 0], "b": [0, 0, 0, 0]}
    >>> _ = sec.tell([Outcome(t.id, rewards[t.prompt_id]) for t in sec.ask(2)])
    >>> sec.values()
    {'easy': 0.5, 'hard': 0.0}
    """

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "metis": {"quantiles": 10, "learning_rate": 0.5, "temperature": 0.4}
        | {"advantage": "centred", "one_category": True, "pool_multiplier": 8},
        **{name: {"learning_rate": alpha, "temperature": tau} for name, (alpha, tau) in TABLE_S1.items()},
        **{
            name: {"learning_rate": alpha, "temperature": tau} | {"advantage": "told"}
            for name, (alpha, tau) in NOT_GRPO.items()
        },
    }
    """Named settings: METIS's, and those of table S1 and appendix B by task and model."""

    def __init__(
        self,
        pool: PromptPool | None = None,
        *,
        category: str | Sequence[str] = "category",
        learning_rate: PositiveShare = 0.5,
        temperature: Positive | Schedule = 1.0,
        advantage: Literal["told", "centred", "std"] | str | GroupReward = "std",
        choice: Literal["boltzmann", "ucb", "thompson"] | str | ChoiceRule = "boltzmann",
        ucb_scale: Weight = 1.0,
        prior_sd: Annotated[float, Range(0.0, 1e6, open_low=True)] = 1.0,
        discount: Share = 0.95,
        within: Literal["uniform", "exhaust"] = "uniform",
        clusters: Count | None = None,
        quantiles: Count | None = None,
        one_category: bool = False,
        pool_multiplier: Count | None = None,
        **core: Unpack[CoreOptions],
    ) -> None:
        self.arm_columns = check_category(category)
        self.learning_rate, self.temperature = learning_rate, temperature
        self.advantage, self.choice = rule_name(advantage), rule_name(choice)
        self.own_reward = own_rule("advantage", advantage, GROUP_REWARDS, ("told", "centred", "std"))
        self.own_choice = own_rule("choice", choice, CHOICE_RULES, ("boltzmann", "ucb", "thompson"))
        self.learns_from = "advantages" if advantage == "told" else "rewards"
        self.ucb_scale, self.prior_sd, self.discount = ucb_scale, prior_sd, discount
        self.clusters, self.quantiles, self.within = clusters, quantiles, within
        self.one_category, self.pool_multiplier = one_category, pool_multiplier
        if clusters is not None and quantiles is not None:
            raise ConfigError(f"give clusters or quantiles, not both, got {clusters} and {quantiles}")
        self.crossed = bool(clusters or quantiles) and category != "category"
        if within == "exhaust" and pool_multiplier is not None and not one_category:
            why = "which goes through whole categories"
            raise ConfigError(f"pool_multiplier must be None with within='exhaust', {why}, got {pool_multiplier}")
        if within == "exhaust":
            self.columns_spec = {**self.columns_spec, "drawn": (np.int8, 0)}
        own: dict[str, Any] = {"category": list(self.arm_columns), "advantage": self.advantage, "choice": self.choice}
        super().__init__(pool, options=own | ({"combined": True} if self.crossed else {}), **core)

    @classmethod
    def metis(cls, pool: PromptPool | None = None, **overrides: Any) -> Self:
        """SEC as METIS runs it as a baseline (its appendix A.5, table 5); any option may be given otherwise.

        Ten categories, learning rate 0.5, temperature 0.4, one category a batch, pool multiplier 8. The pay is METIS's
        advantage, which is not divided by std(r) (its equation 1 and appendix A.4): 2p(1-p) for binary rewards.

        What METIS does not say, and what is done here:

        - *What the ten categories are*: tenths of the pool by `difficulty`, as SEC divides a data set of one domain
          (section 2.1). Give `clusters=10` for clusters of `embedding`, or `category` for categories that you have.
        - *What the pool multiplier does to SEC*: "samples prompts uniformly within the chosen category until the batch
          is full" leaves it the category's 8 k candidates alone. k of them drawn uniformly are k drawn uniformly of the
          category, so it changes nothing. Of 8 k drawn from the whole pool, as METIS draws for itself, a tenth would
          be 0.8 k, so that most batches held two categories.
        - *Several categories in a batch*: it draws "a category", yet updates "every category appearing in the batch".
          Both are so where one category fills the batch until its free prompts are used up, and then the next.
        - Its mean |A| is over tokens. Here it is over rollouts, each counting once: a trainer tells no lengths.
        """
        return cls(pool, **cls.with_preset("metis", overrides))

    @classmethod
    def with_preset(cls, preset: str, overrides: Mapping[str, Any]) -> dict[str, Any]:
        """The options of a preset with others in their place; categories given otherwise replace the preset's."""
        overrides = present_names(overrides, constructor_names(cls))
        options = super().with_preset(preset, overrides)
        if {"category", "clusters"} & set(overrides) and "quantiles" not in overrides:
            options.pop("quantiles", None)
        return options

    # ---- the arms ----

    @property
    def grouped_by(self) -> tuple[str, ...]:
        made = ("embedding",) if self.clusters else ("difficulty",) if self.quantiles else ()
        return (*self.arm_columns, *made) if self.crossed else made or self.arm_columns

    def build(self) -> None:
        self.limits = self._fit_limits()
        super().build()
        self._start_values()

    def _start_values(self) -> None:
        self.q = np.zeros(len(self.arms))
        self.new = np.zeros((3, len(self.arms)))  # of this step's outcomes: groups, pays, squared pays
        self.past = np.zeros((3, len(self.arms)))  # the same of the steps before, discounted

    def divide(self) -> tuple[list[str], np.ndarray]:
        if not (self.clusters or self.quantiles):
            remedy = "add it, name another with category=..., or have some made with clusters=... or quantiles=..."
            return self.arms_in_columns(self.arm_columns, remedy)
        made = divide_by_limits(self.pool, self.limits)
        if not self.crossed:
            return made
        return crossed(self.arms_in_columns(self.arm_columns, "add it, or name another with category=..."), made)

    def members_of(self, arm_of: np.ndarray, n_arms: int) -> ArmMembers:
        if self.within == "exhaust":
            return ArmRounds(arm_of, n_arms, self.columns["drawn"], self.aside())
        return super().members_of(arm_of, n_arms)

    def _fit_limits(self) -> np.ndarray:
        """Centroids (K, d) of clusters, or the least difficulties (K - 1,) of all quantiles but the first."""
        if self.clusters is not None:
            return cluster_limits(self.pool, self.clusters, self.ties(np.arange(len(self.pool))), self.rng["clusters"])
        if self.quantiles is not None:
            remedy = "add it, or give category=... or clusters=..."
            return quantile_limits(self.pool.require("difficulty", "SEC with quantiles", remedy), self.quantiles)
        return np.empty(0)

    # ---- ask: Algorithm 1, lines 3 to 8 ----

    def choose(self, k: int, left: np.ndarray, flying: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        n = 1 if self.one_category else k
        if self.choice == "boltzmann" or self.own_choice is not None:
            share = self._shares(left)
            arms = draw_arms(self.rng["category"], share, n)
            chances = share[arms]
        elif self.choice == "ucb":
            counts = self.past[0] + self.new[0] + flying
            arms, chances = highest_bounds(self.rng["category"], self.q, counts, self.ucb_scale, left, n)
        else:
            arms, chances = self._thompson(n, left), np.full(n, np.nan)
        if self.one_category:
            more = min(k, int(left[arms[0]])) - 1
            arms, chances = np.repeat(arms, 1 + more), np.concatenate([chances, np.ones(more)])
        return arms, chances

    def _shares(self, left: np.ndarray) -> np.ndarray:
        """The arms' probabilities (C,), by Boltzmann or the user's rule; 0 where no prompt is left."""
        if self.own_choice is None:
            return boltzmann_among(self.q, self.present(self.temperature), left)
        counts = self.past[0] + self.new[0]
        return own_shares(self.own_choice, f"choice {self.choice}", self.q, counts, left)

    def _thompson(self, k: int, left: np.ndarray) -> np.ndarray:
        """K arms, each the greatest of one draw from every arm's belief."""
        sd = belief_sd(self.past[0], self.past[1], self.past[2], prior_sd=self.prior_sd)
        return draw_greatest(self.rng["category"], self.q, sd, left, k)

    # ---- tell: lines 9 to 15 ----

    def observe(self, evidence: Evidence) -> None:
        judged = evidence.where(evidence.judged)
        pay = exact(self._pay(judged))
        arms = self.arm_of[judged.slots]
        for row, numbers in zip(self.new, (np.ones(len(pay)), pay, exact(pay * pay)), strict=True):
            np.add.at(row, arms, numbers)

    def _pay(self, judged: Evidence) -> np.ndarray:
        if self.own_reward is None:
            return self.pay(judged, self.advantage)
        return checked_numbers(f"advantage {self.advantage}", self.own_reward(judged), len(judged))

    def end_step(self) -> None:
        self.q = self._updated()
        self.past = self.discount * self.past + self.new
        self.new = np.zeros_like(self.new)

    def _updated(self) -> np.ndarray:
        """Equation 1, TD(0), with this step's pay."""
        groups, pay, _ = self.new
        moved = self.learning_rate * pay / np.maximum(groups, 1.0) + (1.0 - self.learning_rate) * self.q
        return np.asarray(np.where(groups > 0, moved, self.q))

    def values(self) -> dict[str, float]:
        """Q by category, with all outcomes so far."""
        return dict(zip(self.arms, self._updated().tolist(), strict=True))

    # ---- looking inside, saving ----

    def own_metrics(self) -> dict[str, float]:
        """Value and share (Boltzmann) or count (otherwise) of the categories, of the 50 of greatest value at most."""
        if self.choice == "boltzmann":
            return self.arm_metrics(self.q, value=self.q, share=boltzmann(self.q, self.present(self.temperature)))
        return self.arm_metrics(self.q, value=self.q, count=self.past[0])

    @property
    def _divided_by(self) -> list[Any]:
        return [self.clusters, self.quantiles, *(self.arm_columns if self.crossed else ())]

    def own_state(self) -> dict[str, Any]:
        return {
            "divided_by": self._divided_by,
            "limits": encode_array(self.limits),
            "arms": encode_strings(self.arms),
            "numbers": encode_array(np.concatenate([self.q[None], self.new, self.past])),
        }

    def load_own_state(self, state: Mapping[str, Any], added: np.ndarray) -> None:
        limits = decode_array(state["limits"])
        if state["divided_by"] != self._divided_by or limits.shape[1:] != self.limits.shape[1:]:
            return  # strict=False, or vectors of another length: categories are others, nothing is known about them
        if self.clusters or self.quantiles:
            self.limits = limits
            self.divide_into(*self.divide())
            self._start_values()
        rows, arms = self.rows_of(decode_strings(state["arms"]))
        numbers = decode_array(state["numbers"])[:, rows]
        self.q[arms], self.new[:, arms], self.past[:, arms] = numbers[0], numbers[1:4], numbers[4:7]
