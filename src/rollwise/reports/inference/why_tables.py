"""Tables of why settings cost what they do, and of the length half of a head."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rollwise.reports.comparison.words.cells import Cell, Table
from rollwise.reports.comparison.words.sentences import NOTHING
from rollwise.reports.inference.words import difference, number, percent

Found = Mapping[str, Any]

_LENGTHS = {
    "usable": "what uses expected lengths, early stop's latency and utility's charge, may",
    "blind": "they are no better than a constant: don't rely on early stop's latency or utility's charge",
    "unknown": "too few rollouts go on as far, so nothing is known",
}

_MOSTLY = 0.5


def why_table(found: Found) -> Table:
    """Did giving up lose the winner, or did the choice miss it? And what do two levers save beyond their product?"""
    rows = tuple(_why_row(policy) for policy in found["policies"] if policy.get("lost"))
    note = (
        "Oracle: prompts with a success among the candidates carried to the end. Given up: prompts whose last success "
        "was given up or never begun. Missed: prompts with a success that was not chosen; given up and missed together "
        "are what is missing to the oracle of none. Kept: candidates carried to the end, of those that began. Product: "
        "what the blend's two levers would save if each left the same share as when pulled alone (appendix B.7)."
    )
    head = ("policy", "accuracy", "oracle", "given up", "missed", "kept", "saved", "product of levers", "beyond it")
    return Table("Where accuracy is lost", head, rows, note)


def _why_row(policy: Found) -> tuple[Cell, ...]:
    lost, levers = policy["lost"], policy["levers"]
    both = (Cell(NOTHING), Cell(NOTHING))
    if levers is not None:
        both = (Cell(f"{levers['product']:.0%}", order=levers["product"]), estimate_cell(levers["beyond"], percent))
    return (
        Cell(policy["name"], order=policy["name"]),
        Cell(number(policy["accuracy"]["mean"]), order=policy["accuracy"]["mean"]),
        Cell(number(lost["oracle"]), order=lost["oracle"]),
        estimate_cell(lost["given_up"], difference),
        estimate_cell(lost["missed"], difference),
        Cell(f"{lost['keep_rate']:.0%}", order=lost["keep_rate"]),
        estimate_cell(policy["saving"], percent),
        *both,
    )


def length_table(found: Found) -> Table:
    """The error of E[l] along the rollouts."""
    said = (found["calibration"] or {}).get("length_at") or ()
    rows = tuple(
        (
            Cell(f"{at['step']}", order=float(at["step"])),
            Cell(f"{at['alive']:,}", order=float(at["alive"])),
            Cell(number(at["error"], 1), order=at["error"]),
            Cell(number(at["bias"], 1), order=at["bias"]),
            Cell(number(at["blind"], 1), order=at["blind"]),
            estimate_cell(at["skill"], percent),
            Cell(number(at["correlation"]), order=at["correlation"]),
        )
        for at in said
    )
    note = (
        "Of the tokens still to come after this many, among rollouts that go on: the mean absolute error and the mean "
        "difference of the head's expected length, the error of the best constant, and 1 - error / that error, with a "
        "95 % interval over prompts."
    )
    head = ("tokens", "rollouts alive", "error", "too long by", "error of a constant", "skill", "correlation")
    return Table("Expected length", head, rows, note)


def length_words(found: Found) -> list[str]:
    """What the gate of the length half says, in a sentence; nothing in evaluations made before."""
    gate = (found["calibration"] or {}).get("length_gate")
    if gate is None:
        return []
    skill = "" if gate["skill"]["value"] is None else f" (skill {percent(gate['skill'])})"
    return [f"Expected lengths after {gate['step']} tokens{skill}: {_LENGTHS[gate['verdict']]}."]


def votes_words(found: Found) -> list[str]:
    """Whether votes have anything to count, in a sentence; nothing where most candidates have an answer."""
    answered = found.get("answered", 1.0)  # evaluations made before do not say
    if answered >= _MOSTLY:
        return []
    return [
        f"{answered:.0%} of the candidates have an answer in <answer> tags or \\boxed{{}}; the others have no vote, so "
        "majority, ESC and adaptive consistency can't be compared with the head here."
    ]


def estimate_cell(values: Found, words: Any) -> Cell:
    """A cell of an estimate, its interval below."""
    value, _, ends = words(values).partition(" [")
    return Cell(value, f"[{ends}" if ends else "", values["value"])
