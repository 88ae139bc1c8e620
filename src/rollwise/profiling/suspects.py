"""Finds what looks answered among rollouts that earned nothing: answers misread by the reward, labels that are wrong.

Hints, not verdicts: each is shown with the text it rests on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rollwise.answers import final_answer, marked_answer, normalised, same_answer, stands_within

Kind = Literal["answer-given", "answer-within", "all-agree"]

MEANINGS: dict[Kind, str] = {
    "answer-given": "the recorded answer is the final answer of a rollout that earned nothing",
    "answer-within": "the recorded answer stands within a rollout that earned nothing",
    "all-agree": "all rollouts that gave an answer agree on another than the recorded one: a wrong label?",
}

_LEAST_WITHIN = 3
"""An answer of fewer letters or digits stands in many a text by chance."""


@dataclass(frozen=True)
class Suspect:
    """A prompt no rollout of which was solved, though some look answered.

    Attributes:
        id: The prompt's.
        kind: What is suspicious; see `MEANINGS`.
        rollouts: How many of its rollouts show it.
        recorded: The recorded answer.
        text: The rollout that shows it.
        reward: That rollout's.
    """

    id: str
    kind: Kind
    rollouts: int
    recorded: str
    text: str
    reward: float | None


def find_suspect(
    id_: str,
    recorded: str | None,
    texts: Sequence[str],
    rewards: Sequence[float | None],
    truncated: Sequence[bool] | None = None,
) -> Suspect | None:
    """What is suspicious of a prompt none of whose n rollouts was solved; None if nothing is.

    A truncated rollout counts only if it marks its answer: the last number of a text that was cut off is no answer.

    Args:
        id_: The prompt's.
        recorded: Its recorded answer; None where there is none.
        texts: (n,) the rollouts.
        rewards: (n,) their rewards.
        truncated: (n,) which of them were cut off; None where that is not known.

    >>> find_suspect("a", "7", ["I say 7.", "9"], [0.0, 0.0]).kind
    'answer-given'
    """
    if recorded is None:
        return None
    cut = truncated or [False] * len(texts)
    finals = {i: final_answer(t) for i, t in enumerate(texts) if not cut[i] or marked_answer(t) is not None}
    given = [i for i, final in finals.items() if final is not None and same_answer(final, recorded)]
    within = [i for i in finals if len(normalised(recorded)) >= _LEAST_WITHIN and stands_within(recorded, texts[i])]
    agreed = {"" if final is None else normalised(final) for final in finals.values()}
    alike = len(agreed) == 1 and "" not in agreed and len(finals) > 1
    kind: Kind
    if given:
        kind, at = "answer-given", given
    elif within:
        kind, at = "answer-within", within
    elif alike:
        kind, at = "all-agree", list(finals)
    else:
        return None
    return Suspect(id_, kind, len(at), recorded, texts[at[0]], rewards[at[0]])
