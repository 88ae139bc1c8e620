"""What to do with this data: a pure function of the profile's numbers, with its reasons.

The rules rest on benchmarks/results/measurements.md: on simulations where it says so, else on runs of a small model on
Countdown. They are the project's judgement of these, not a theorem.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

LEAST_CONTRAST = 0.01
"""Below this effective task ratio, which a fit never says is 0, no bound is given."""
ENOUGH_CONTRAST = 0.7
"""From this effective task ratio on, uniform sampling wastes so little that a curriculum has little to gain."""
MANY_SUSPECTS = 0.2
"""From this share of the hopeless prompts on, suspicious answers are looked at before anything else."""
FEWEST_SUSPECTS = 5
"""... if there are at least this many."""
SEVERAL_VISITS = 2.0
"""With fewer visits a prompt, methods that learn from a prompt's own outcomes have too few to learn from."""
MANY_TRUNCATED = 0.3
MANY_HOPELESS = 0.5
APART = 0.15
"""Categories whose effective ratios are further apart than this are worth choosing between."""
FEWEST_OF_A_CATEGORY = 10

BASIS = (
    "More groups with contrast need not make a better model: on Countdown, with a small model, ratios 0.13 to 0.16 "
    "above uniform's left the score where it was, or lowered it (benchmarks/results/measurements.md). Run uniform "
    "beside it, on the same seeds."
)


@dataclass(frozen=True)
class Facts:
    """What the recommendation depends on.

    Attributes:
        mean_pass_rate: Over the sampled prompts.
        effective: Effective task ratio of uniform sampling at the group size.
        unsolved: Share of sampled prompts without a solved rollout.
        solved: Share all of whose rollouts were solved.
        hopeless: Estimated share of prompts whose pass rate is below 0.01.
        suspects: How many of the hopeless prompts look answered.
        n_hopeless: How many hopeless prompts there are.
        truncated: Share of rollouts cut off.
        categories: category -> (effective task ratio, prompts sampled).
        visits: Visits of a prompt in the training planned; None if unknown.
        embedding: Whether the data has a column of embeddings.
        references: Whether all prompts have pass rates of two models.
        differing: Share of sampled prompts whose own rewards differ, partial ones included: what has contrast at all.
    """

    mean_pass_rate: float
    effective: float
    unsolved: float
    solved: float
    hopeless: float
    suspects: int
    n_hopeless: int
    truncated: float
    categories: Mapping[str, tuple[float, int]]
    visits: float | None
    embedding: bool
    references: bool
    differing: float = 1.0


@dataclass(frozen=True)
class Recommendation:
    """What to do, and why.

    Attributes:
        headline: In a line.
        arguments: For `rollwise train`; "" where training should wait.
        reasons: In the order of their weight.
        bound: 1 / effective ratio: no choice of prompts can save more than this factor of the rollouts that uniform
            sampling makes for a group with contrast. None where there is no contrast at all.
    """

    headline: str
    arguments: str
    reasons: tuple[str, ...]
    bound: float | None


def recommend(facts: Facts) -> Recommendation:
    """The recommendation.

    >>> facts = Facts(0.5, 0.8, 0.1, 0.1, 0.05, 0, 5, 0.0, {}, None, False, False)
    >>> recommend(facts).headline, recommend(facts).bound
    ('uniform sampling is fine', 1.25)
    """
    bound = 1.0 / facts.effective if facts.effective >= LEAST_CONTRAST else None
    headline, arguments, reasons = _mend_first(facts) or _choose(facts)
    if facts.truncated >= MANY_TRUNCATED and "truncated" not in reasons[0]:
        reasons = [*reasons, f"{facts.truncated:.0%} of the rollouts were truncated: allow more tokens if you can"]
    if bound is not None:
        reasons = [*reasons, _bound_in_words(facts.effective, bound)]
    if arguments and "uniform " not in arguments + " ":
        reasons = [*reasons, BASIS]
    return Recommendation(headline, arguments, tuple(reasons), bound)


def _bound_in_words(effective: float, bound: float) -> str:
    return (
        f"uniform sampling has contrast in {effective:.0%} of its groups: a perfect choice of prompts would get as "
        f"many such groups from {bound:.2f} times fewer rollouts"
    )


def _mend_first(facts: Facts) -> tuple[str, str, list[str]] | None:
    """What stands in the way of any training."""
    if facts.suspects >= FEWEST_SUSPECTS and facts.suspects >= MANY_SUSPECTS * facts.n_hopeless:
        reason = (
            f"{facts.suspects} of {facts.n_hopeless} prompts that no rollout solved look answered: if the reward "
            "misreads them, or their labels are wrong, the policy learns the mistake"
        )
        return "mend the answers or the reward first, and profile again", "", [reason]
    if facts.mean_pass_rate == 0.0 and facts.truncated >= MANY_TRUNCATED:
        reason = f"no rollout was solved, and {facts.truncated:.0%} were truncated, so their rewards say little"
        return "allow more tokens (--max_completion_length), and profile again", "", [reason]
    if facts.differing > 0.0:
        return None
    if facts.mean_pass_rate == 0.0:
        first = "no rollout was solved: read the texts; do supervised training first, or take easier data"
        reasons = [first, "no curriculum makes contrast where there is none"]
        return "this policy can't learn from this data yet", "", reasons
    reason = "no prompt's rollouts differ in reward, and some prompts are solved by all of them: take harder data"
    return "nothing is left to learn here", "", [reason]


def _choose(facts: Facts) -> tuple[str, str, list[str]]:
    if facts.effective >= ENOUGH_CONTRAST:
        reason = f"most prompts are learnable: an effective task ratio of {facts.effective:.2f} without any choice"
        return "uniform sampling is fine", "--curriculum uniform", [reason]
    if facts.visits is not None and facts.visits < SEVERAL_VISITS:
        return _one_pass(facts)
    visits = (
        "several visits to each prompt are assumed (say --steps)"
        if facts.visits is None
        else f"each prompt is visited {facts.visits:.1f} times"
    )
    reasons = [
        f"{visits}, so a method can use what it saw of a prompt at the next visit",
        f"{facts.unsolved:.0%} of the prompts were never solved, {facts.solved:.0%} always; an estimated "
        f"{facts.hopeless:.0%} are truly hopeless (pass rate below 0.01)",
        "in real training of a small policy on two tasks it ended above uniform sampling in all six comparisons "
        "(docs/results.md)",
    ]
    if facts.hopeless >= MANY_HOPELESS:
        reasons.append(
            "prioritized replay is simpler, and made for many hopeless prompts (+0.17, Recommended +0.22; simulated)"
        )
    return "a curriculum can pay: Recommended", "--curriculum recommended", reasons


def _one_pass(facts: Facts) -> tuple[str, str, list[str]]:
    seldom = (
        f"each prompt is visited {facts.visits:.1f} times: only methods that predict prompts not seen yet can "
        "gain (trained on Reversal in one pass: MoPPS, which can't, -0.01; Recommended with categories +0.26)"
    )
    big = {name: ratio for name, (ratio, n) in facts.categories.items() if n >= FEWEST_OF_A_CATEGORY}
    if len(big) > 1 and max(big.values()) - min(big.values()) >= APART:
        best, worst = max(big, key=lambda c: big[c]), min(big, key=lambda c: big[c])
        reason = (
            f"categories differ: effective ratio {big[best]:.2f} in {best!r}, {big[worst]:.2f} in {worst!r}; choosing "
            f"between them alone can reach at most {max(big.values()):.2f}"
        )
        return "similar prompts have similar pass rates: Recommended", "--curriculum recommended", [seldom, reason]
    if facts.references:
        reason = "two models' pass rates predict prompts that were never trained on (+0.23, simulated)"
        return "reference pass rates predict new prompts: Recommended", "--curriculum recommended", [seldom, reason]
    if facts.embedding:
        reason = (
            "the data has embeddings: prompts of one cluster have similar pass rates (trained on Reversal in one pass: "
            "+0.26; `gps`, which uses them too, +0.27, and it learned faster)"
        )
        arguments = "--curriculum recommended --curriculum_options.category embedding"
        return "similar prompts have similar pass rates: Recommended", arguments, [seldom, reason]
    reason = (
        "nothing predicts prompts not seen yet: there are no categories that differ, no embeddings, no pass rates of "
        "two models. A gate replaces groups without contrast, at the cost of their rollouts. Pass rates of two models "
        "would do better (Recommended with them: +0.23, simulated): profile all prompts with each, the second with "
        "--join"
    )
    return "uniform with dynamic sampling", "--curriculum uniform --gate mixed", [seldom, reason]
