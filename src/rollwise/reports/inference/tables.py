"""The tables of an evaluation of the adaptive decoder, once, for Markdown and the page, and what they come to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rollwise.reports.comparison.words.cells import Cell, Table
from rollwise.reports.comparison.words.sentences import NOTHING
from rollwise.reports.inference.why_tables import estimate_cell, length_table, length_words, votes_words, why_table
from rollwise.reports.inference.words import difference, number, percent, share, spread
from rollwise.runs.evaluation_file import FAILED, viability_words

Found = Mapping[str, Any]

OBJECTIVES = {"row_forwards": "row-forwards", "steps": "decode steps"}
_POLICY_HEAD = ("policy", "accuracy", "from none", "row-forwards", "saved", "steps", "steps saved",
                "best-of-n at equal cost", "from it", "wall s", "wall saved", "CPU saved")  # fmt: skip
_GATES = {
    "aggressive": "pruning can be aggressive (above .65)",
    "careful": "prune with care (between .60 and .65)",
    "off": "leave pruning off (below .60)",
    "unknown": "no prompt has both successes and failures, so nothing is known",
}


def all_tables(found: Found) -> list[Table]:
    """Those that there are numbers for, in the page's order."""
    tables = [policies_table(found), peers_table(found), why_table(found), held_out_table(found), best_of_table(found)]
    if found["calibration"]:
        tables += [calibration_table(found), auc_table(found), length_table(found), *selection_tables(found)]
    return [table for table in tables if table.rows]


def verdict(found: Found) -> list[str]:
    """What it came to, in sentences: held out, on both axes; at matched cost; and whether to prune."""
    failed = viability_words(found["calibration"]["viability"]) if _is_unviable(found) else None
    said = [failed] if failed else []  # leads, as savings by a head that chooses no better than chance are of no use
    for point in found["held_out"]:
        if point["family"] == "any":
            saving = point["saving" if point["objective"] == "row_forwards" else "steps_saving"]
            names = " / ".join(dict.fromkeys(fold["setting"] for fold in point["folds"]))
            said.append(
                f"Chosen on one half of the prompts and scored on the other: {names} saves {percent(saving)} of "
                f"{OBJECTIVES[point['objective']]} at {difference(point['accuracy_difference'])} of accuracy; "
                f"from best-of-n at the same cost, {difference(point['matched']['difference'])}."
            )
    if ceiling := found.get("ceiling"):
        said.append(
            f"A judge that is never wrong, asked of one finished candidate after another, would save "
            f"{ceiling['saving']:.0%} of row-forwards at an accuracy of {number(ceiling['accuracy'])}; a policy that "
            "saves more gives up on prompts."
        )
    said += votes_words(found)
    may_act = [p for p in found["policies"] if not p["baseline"] and p["name"] != "majority"]
    if idle := [p["name"] for p in may_act if not p.get("acted", True)]:
        said.append(f"Never acted, all candidates were carried to the end: {', '.join(idle)}.")
    if found["calibration"] and (found.get("fitted") or "fitted" not in found or found["fitted"] is None):
        said.append(f"These numbers are of {_fitted_words(found)}.")
    if found["calibration"]:
        if "viability" in found["calibration"] and not failed:
            said.append(viability_words(found["calibration"]["viability"]))
        said += length_words(found)
        gate = found["calibration"]["gate"]
        said.append(
            f"Within-prompt AUC after {gate['step']} tokens, where pruning would begin: {number(gate['within'])}; "
            f"{_GATES[gate['verdict']]}."
        )
    return said


def _is_unviable(found: Found) -> bool:
    return ((found["calibration"] or {}).get("viability") or {}).get("verdict") == FAILED


def policies_table(found: Found) -> Table:
    """Table 4, with what best-of-n reaches at the same cost, and seconds."""
    policies = [policy for policy in found["policies"] if not policy.get("headless")]
    seconds = (
        "Seconds are of live runs, compared with the live run of none "
        "with the same seed; accuracy, row-forwards and steps are of replays of the full runs."
    )
    note = (
        f"{found['prompts']} prompts; mean ± standard deviation over seeds "
        f"{', '.join(map(str, found['config']['seeds']))}; in brackets 95 % intervals over prompts, paired, "
        f"{found['config']['resamples']} resamples. Row-forwards and steps are those of a prompt. Best-of-n at equal "
        f"cost is a mixture of the two whole n around it. {seconds if any(p['live'] for p in policies) else ''}"
    )
    return _policy_table("Policies", policies, note.rstrip())


def peers_table(found: Found) -> Table:
    """What can be had without a success head, in the same columns and against the same baseline."""
    policies = [policy for policy in found["policies"] if policy.get("headless")]
    check = found.get("check")
    checked = f"; one candidate after another until its text passes the check {check['name']}" if check else ""
    sure = "; DeepConf, a vote weighted by the confidence of tokens, unsure candidates stopped early"
    if not any(policy["family"] == "deepconf" for policy in policies):  # which needs the tokens' confidences
        sure = ""
    note = (
        "No head, no training: the majority of all K answers; ESC and adaptive consistency, the majority of as many as "
        f"it takes to agree{sure}{checked}. Their answers are chosen by vote, those of none and of best-of-n by "
        f"{found['config']['select']}."
    )
    return _policy_table("Without a head", policies, note)


def _policy_table(name: str, policies: Sequence[Found], note: str) -> Table:
    """A row a policy; without the columns of seconds where none of them was run live."""
    width = len(_POLICY_HEAD) if any(policy["live"] for policy in policies) else len(_POLICY_HEAD) - 3
    return Table(name, _POLICY_HEAD[:width], tuple(_policy_row(policy)[:width] for policy in policies), note)


def _policy_row(policy: Found) -> tuple[Cell, ...]:
    live, equal = policy["live"], policy["matched"]
    cells = [
        Cell(policy["name"], order=policy["name"]),
        _spread(policy["accuracy"], 3),
        estimate_cell(policy["accuracy_difference"], difference),
        _spread(policy["row_forwards"], 1),
        estimate_cell(policy["saving"], percent),
        _spread(policy["steps"], 1),
        estimate_cell(policy["steps_saving"], percent),
        Cell(number(equal["accuracy"]), equal["name"], equal["accuracy"]),
        estimate_cell(equal["difference"], difference),
    ]
    if live is None:
        return (*cells, Cell(NOTHING), Cell(NOTHING), Cell(NOTHING))
    return (
        *cells,
        Cell(spread(live["wall_s"], 2), _replayed(live), live["wall_s"]["mean"]),
        *(Cell(share(live[f"{name}_saving"]), order=live[f"{name}_saving"]["mean"]) for name in ("wall_s", "cpu_s")),
    )


def _replayed(live: Found) -> str:
    same = live["as_replayed"]
    return "" if same == 1 else f"{same:.1%} of prompts as replayed"


def held_out_table(found: Found) -> Table:
    """The operating points: chosen on one half, scored on the other (B.7)."""
    head = ("to save", "among", "chosen", "accuracy", "from none", "where chosen", "row-forwards saved", "steps saved",
            "from best-of-n at equal cost")  # fmt: skip
    rows = []
    for point in found["held_out"]:
        folds = point["folds"]
        optimistic = sum(fold["chosen_on"] for fold in folds) / len(folds)
        names = " / ".join(fold["setting"] for fold in folds)
        rows.append(
            (
                Cell(OBJECTIVES[point["objective"]], order=point["objective"]),
                Cell(point["family"], order=point["family"]),
                Cell(names, order=names),
                Cell(number(point["accuracy"]), order=point["accuracy"]),
                estimate_cell(point["accuracy_difference"], difference),
                Cell(f"{optimistic:+.3f}", order=optimistic),
                estimate_cell(point["saving"], percent),
                estimate_cell(point["steps_saving"], percent),
                estimate_cell(point["matched"]["difference"], difference),
            )
        )
    note = (
        "For each half of the prompts, the cheapest setting whose accuracy on the other half is within "
        f"{found['config']['tolerance']:g} of full best-of-N. Where chosen: the difference on the prompts "
        "that the setting was chosen on, which is too good."
    )
    return Table("Held-out operating points", head, tuple(rows), note)


def best_of_table(found: Found) -> Table:
    """The fixed-budget baseline at every budget."""
    rows = tuple(
        (
            Cell(f"best of {row['n']}", order=float(row["n"])),
            _spread(row["accuracy"], 3),
            Cell(number(row["majority"]), order=row["majority"]),
            *([Cell(number(row["checked"]), order=row["checked"])] if found.get("check") else []),
            Cell(number(row["row_forwards"], 1), order=row["row_forwards"]),
            Cell(number(row["steps"], 1), order=row["steps"]),
        )
        for row in found["best_of"]
    )
    note = (
        f"Expectations over all subsets of the full runs' candidates, chosen by {found['config']['select']}; the "
        "majority does not see the head."
    )
    checked = ["by the check"] if found.get("check") else []
    return Table("Best-of-n", ("n", "accuracy", "by majority", *checked, "row-forwards", "steps"), rows, note)


def calibration_table(found: Found) -> Table:
    """Table 3, each number beside what it must be compared with."""
    said = found["calibration"]
    end, prompt, joint, spread_of = said["end"], said["prompt"], said["joint"], said["spread"]
    rate = f"{said['base_rate']:.3f} succeed"
    lines: list[tuple[str, float | None, str]] = []
    if joint:
        beside = f"floor of sampling noise {number(joint['floor'])}, prompt-blind {number(joint['blind'])}"
        lines += [
            (f"total variation at the prompt, {joint['rollouts']} rollouts each", joint["head"], beside),
            ("total variation of the reward only", joint["reward"], ""),
        ]
    lines += [
        ("AUC at the end, pooled", said["auc_end"]["pooled"], rate),
        ("AUC at the end, within prompts", said["auc_end"]["within"], ""),
        ("AUC of V(x)", said["auc_prompt"], "before any token"),
    ]
    if check := said.get("check"):
        passing = f"{check['passed']:.3f} pass, {number(check['right'])} of them succeed"
        lines += [
            ("AUC of the check of the text, pooled", check["pooled"], passing),
            ("AUC of the check of the text, within prompts", check["within"], "without the head"),
        ]
    for name, part in (("end", end), ("prompt", prompt)):
        always = part["always_positive"]
        lines += [
            (f"Brier at the {name}", part["brier"], f"best constant {number(part['brier_baseline'])}"),
            (f"calibration error at the {name}", part["ece"], f"equal mass {number(part['ece_equal_mass'])}"),
            (f"F1 at the {name}", part["f1"], f"always yes {number(always['f1'])}"),
            (f"accuracy at the {name}", part["accuracy"], f"always yes {number(always['accuracy'])}"),
        ]
    lines += [
        ("V(x), 5th percentile of prompts", spread_of["p5"], f"95th {number(spread_of['p95'])}"),
        ("correlation of V(x) and pass rate", spread_of["pearson"], f"of ranks {number(spread_of['spearman'])}"),
        ("correlation of predicted and true length", said["length_correlation"], "at the prompt"),
    ]
    rows = tuple((Cell(name), Cell(number(value)), Cell(beside or NOTHING)) for name, value, beside in lines)
    note = f"{said['rollouts']:,} rollouts of {_fitted_words(found)}."
    return Table("Calibration", ("measure", "head", "compare with"), rows, note)


def _fitted_words(found: Found) -> str:
    """On how many of the prompts the head was fitted; an earlier version wrote nothing of it."""
    prompts, fitted = found["calibration"]["prompts"], found.get("fitted")
    if fitted is None:
        return f"{prompts} prompts; whether the head was fitted on some of them is not known"
    return f"{prompts} prompts, the head was fitted on {fitted or 'none'} of them"


def auc_table(found: Found) -> Table:
    """AUC over the tokens, pooled and within prompts."""
    rows = tuple(
        (
            Cell(f"{at['step']}", order=float(at["step"])),
            Cell(f"{at['alive']:,}", order=float(at["alive"])),
            Cell(number(at["pooled"]), order=at["pooled"]),
            Cell(number(at["within"]), order=at["within"]),
        )
        for at in found["calibration"]["auc_at"]
    )
    note = "Of what a policy sees after this many tokens, among rollouts that go on. Pruning depends on the second."
    return Table("AUC over the tokens", ("tokens", "rollouts alive", "AUC pooled", "AUC within prompts"), rows, note)


def selection_tables(found: Found) -> list[Table]:
    """Table 5, if it was taken."""
    said = found["calibration"]["selection"]
    if said is None:
        return []
    rows = tuple(
        (Cell(rule), Cell(number(value), order=value))
        for rule, value in sorted(said["accuracy"].items(), key=lambda item: item[1])
    )
    note = (
        "Votes are for the answer as it is written, and the majority does not see the head; random is the floor, "
        "oracle the ceiling, which knows the rewards."
    )
    return [Table(f"Selection at K = {said['k']}", ("rule", "accuracy"), rows, note)]


def title(found: Found) -> str:
    """What was evaluated."""
    model = found["about"].get("model")
    return f"Adaptive best-of-{found['config']['num_generations']}" + (f" of {model}" if model else "")


def _spread(values: Found, digits: int) -> Cell:
    return Cell(spread(values, digits), order=values["mean"])
