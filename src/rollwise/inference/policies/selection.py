"""Which of a prompt's candidates is the answer: by value, by vote, or by both. Pure functions; numpy alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from rollwise.answers import boxed_answer
from rollwise.errors import ConfigError
from rollwise.inference.policies.candidate_group import FINISHED, Candidate, Result
from rollwise.inference.policies.candidates import FloatArray, Policy
from rollwise.options import check_name
from rollwise.tasks.tags import extract_answer

AnswerKey = Callable[[str], str | None]

RULES = ("value-end", "majority", "weighted-majority", "random", "oracle")
"""`random` and `oracle` are a table's floor and ceiling (Table 5); `oracle` sees the rewards: tables only."""

LIVE_RULES = RULES[:3]

CONFIDENT = "confident"
"""DeepConf's own vote, for a policy that has `voters`: see `choose`."""

CHECKED = "checked"
"""The vote of those whose text passes a check, or of all if none does: see `choose`."""

CHOICES = (*LIVE_RULES, CONFIDENT, CHECKED)
"""What `choose` knows."""


def answer_key(text: str) -> str | None:
    r"""What a completion votes for: its last answer tags, else its last `\boxed{}`, without white space; or None.

    A key is the text as it is written. Voting by the value of an expression would merge all votes for the target, which
    no user knows: it votes better than any user can (.951 against .906 on Countdown).

    >>> answer_key("<answer> 2 * 3 </answer>"), answer_key(r"so \boxed{7}."), answer_key("maybe 7")
    ('2*3', '7', None)
    """
    start = text.rfind("\\boxed{")
    found = extract_answer(text) or (None if start < 0 else boxed_answer(text[start:]))
    return None if found is None else "".join(found.split()) or None


def select(
    values_end: ArrayLike,
    answers: Sequence[str | None],
    rule: str = "value-end",
    *,
    states: Sequence[float] = (0.0, 1.0),
) -> int:
    """The chosen one of C candidates that can be chosen.

    - `value-end`: the highest value; the first of equals.
    - `majority`: the answer that most give. Of answers that tie, the one with the higher sum of values, then the one
      that comes first; of its candidates, the one with the highest value, then the first.
    - `weighted-majority`: the answer whose candidates' values sum to most. With states outside of [0, 1] what counts
      is how far a value is above the lowest state: sums of negative numbers would be against what most give.

    No answer (None) never wins against an answer. Without a signal (all values NaN) the first two are the majority,
    and so is the third: each vote counts 1. A single NaN (a candidate without a token) counts as the lowest.

    Args:
        values_end: (C,) `value_end`, expected rewards.
        answers: (C,) keys, as from `answer_key`.
        rule: One of `LIVE_RULES`.
        states: (R,) rewards of the states that the values are means of.

    Raises:
        ConfigError: An unknown rule, nobody to choose from, or arrays of unequal length.

    >>> select([0.9, 0.5, 0.3], ["a", "b", "b"]), select([0.9, 0.5, 0.3], ["a", "b", "b"], "majority")
    (0, 1)
    """
    values = np.asarray(values_end, dtype=np.float64)
    if values.ndim != 1 or len(values) == 0 or len(values) != len(answers):
        raise ConfigError(f"values_end and answers must be (C,) of C >= 1, got {values.shape} and {len(answers)}")
    check_name("rule", rule, LIVE_RULES)
    signalled = not np.isnan(values).all()
    if rule == "value-end" and signalled:
        return int(np.nanargmax(values))
    weights = _weights(values, states) if signalled else np.zeros(len(values))
    return _elect(weights, answers, weighted=rule == "weighted-majority" and signalled)


def _weights(values: FloatArray, states: Sequence[float]) -> FloatArray:
    """(C,) weights of votes, 0 at the least: values as they are for states within [0, 1], and for a single state."""
    within = len(states) < 2 or (min(states) >= 0 and max(states) <= 1)
    floor = min(0.0 if within else float(min(states)), float(np.nanmin(values)))
    return np.asarray(np.nan_to_num(values - floor))


def _elect(values: FloatArray, answers: Sequence[str | None], *, weighted: bool) -> int:
    voters: dict[str | None, list[int]] = {}
    for i, answer in enumerate(answers):
        voters.setdefault(answer, []).append(i)

    def standing(answer: str | None) -> tuple[bool, float, float, int]:
        who = voters[answer]
        total = round(float(values[who].sum()), 12)  # so that .1 + .2 ties with .3
        return answer is not None, total if weighted else float(len(who)), total, -who[0]

    winners = voters[max(voters, key=standing)]
    return winners[int(np.argmax(values[winners]))]


def choose(
    result: Result,
    rule: str = "value-end",
    *,
    key: AnswerKey = answer_key,
    states: Sequence[float] = (0.0, 1.0),
    policy: Policy | None = None,
    check: Callable[[str], bool] | None = None,
) -> Candidate | None:
    """The answer to a prompt, from what came of it; None if no candidate is complete.

    With the rule `value-end` one that was cut off at the token limit is chosen only where none finished (section 3.2 of
    ZIP-RC-Lite: "among finished, non-pruned samples"). With the rule `confident` only those vote whom the policy's
    `voters` admits, each with the weight of its lowest group; the others only where none of those has an answer. With
    the rule `checked` it is the majority of those whose text passes the check, and of all where none does.

    Args:
        result: The prompt's candidates.
        rule: One of `CHOICES`.
        key: What a text votes for; never by the prompt's target.
        states: (R,) rewards of the signal's states.
        policy: By which the candidates were decoded; for `confident` only.
        check: Of a text; for `checked` only.

    Raises:
        ConfigError: an unknown rule, or one that the policy can't follow.
    """
    if rule not in CHOICES:
        raise ConfigError(f"rule must be one of {', '.join(CHOICES)}, got {rule!r}")
    among = result.complete
    if not among:
        return None
    if rule == CHECKED:
        if check is None:
            raise ConfigError("rule 'checked' needs a check, text -> bool")
        among, rule = [one for one in among if check(one.text)] or among, "majority"
    if rule == "value-end":
        finished = [one for one in among if one.state == FINISHED and not np.isnan(one.value_end)]
        among = finished or among
    values = [candidate.value_end for candidate in among]
    if rule == CONFIDENT:
        voters = getattr(policy, "voters", None)
        if voters is None:
            raise ConfigError(f"rule 'confident' is the vote of DeepConfPolicy, got policy {policy!r}; give that one")
        admitted = voters([one.index for one in among], [one.lowest for one in among])
        some = [one for one, may in zip(among, admitted, strict=True) if may and key(one.text) is not None]
        among = some or among
        values, rule = [candidate.lowest for candidate in among], "weighted-majority"
    return among[select(values, [key(candidate.text) for candidate in among], rule, states=states)]
