"""Error rates of the rewards that compare answers, on answers labelled by hand. The table is in docs/howto/rewards.md.

The labels are the truth, and the errors are reported. Run this file to write the table.
"""

import csv
from collections.abc import Sequence
from pathlib import Path

import pytest

from rollwise.sampling.scorers.builtin import boxed, exact, hendrycks, math

SCORERS = (math, hendrycks, exact, boxed)
PAGE = Path(__file__).parents[2] / "docs/howto/rewards.md"
BEGIN, END = "<!-- error rates -->\n", "<!-- end of the error rates -->"


def labelled() -> list[dict[str, str]]:
    with (Path(__file__).parent / "labelled.tsv").open() as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def errors(rows: Sequence[dict[str, str]], rewards: Sequence[float | None]) -> tuple[int, int]:
    """How many right answers did not get 1, and how many wrong ones did."""
    right = [row["right"] == "1" for row in rows]
    full = [reward == 1.0 for reward in rewards]
    pairs = list(zip(right, full, strict=True))
    return pairs.count((True, False)), pairs.count((False, True))


def table() -> str:
    rows = labelled()
    columns = {"completions": [row["completion"] for row in rows], "answer": [row["recorded"] for row in rows]}
    rewards = [scorer(**columns) for scorer in SCORERS]
    names = " | ".join(f"`{scorer.__name__}`" for scorer in SCORERS)
    lines = [f"| answers | right | wrong | {names} |", "|---|--:|--:|" + "--:|" * len(SCORERS)]
    for kind in [*dict.fromkeys(row["kind"] for row in rows), "all"]:
        own = [i for i, row in enumerate(rows) if kind in (row["kind"], "all")]
        right = sum(rows[i]["right"] == "1" for i in own)
        found = [errors([rows[i] for i in own], [scores[i] for i in own]) for scores in rewards]
        cells = [f"{missed} / {accepted}" for missed, accepted in found]
        lines.append(f"| {kind} | {right} | {len(own) - right} | {' | '.join(cells)} |")
        if kind == "all":
            wrong = len(own) - right
            rates = [f"{missed / right:.0%} / {accepted / wrong:.0%}" for missed, accepted in found]
            lines.append(f"| rates | | | {' | '.join(rates)} |")
    return "\n".join(lines) + "\n"


def test_there_are_more_than_200_answers_and_none_twice() -> None:
    rows = labelled()
    assert len(rows) >= 200
    assert len({(row["recorded"], row["completion"]) for row in rows}) == len(rows)
    assert {row["right"] for row in rows} == {"0", "1"}


def test_the_page_has_the_error_rates() -> None:
    pytest.importorskip("math_verify")
    assert PAGE.read_text().split(BEGIN)[1].split(END)[0] == table(), "run this file to write it"


def test_errors_are_counted_by_hand() -> None:
    rows = [{"right": "1"}, {"right": "1"}, {"right": "0"}, {"right": "0"}]
    assert errors(rows, [1.0, 0.1, 1.0, None]) == (1, 1)


if __name__ == "__main__":
    before, rest = PAGE.read_text().split(BEGIN)
    PAGE.write_text(before + BEGIN + table() + END + rest.split(END)[1])
