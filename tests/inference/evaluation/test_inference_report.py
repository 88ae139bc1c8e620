"""The page, tables and figures of an evaluation, from its JSON alone."""

import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest
from fake_decoder import LIMIT, STATES, FakeDecoder, judge
from lighter import empty_files

from rollwise.errors import StateFileError
from rollwise.inference.evaluation.calibration import Scored, calibration_report
from rollwise.inference.evaluation.settings import EvaluationConfig
from rollwise.inference.evaluation.study import Evaluation
from rollwise.inference.head.spec import HeadSpec
from rollwise.reports.drawing import INK
from rollwise.reports.inference.figures import COLOURS, peers_figure
from rollwise.reports.inference.report import write_inference_report
from rollwise.reports.inference.tables import peers_table, policies_table, verdict
from rollwise.reports.inference.words import difference, percent, share
from rollwise.runs.evaluation_file import viability_words


@pytest.fixture(scope="module", autouse=True)
def _figures() -> None:
    """They are drawn here."""


def calibration() -> dict[str, Any]:
    import numpy as np

    decode, spec = FakeDecoder(), HeadSpec(edges=(0, 32, 64))
    drawn = [(i, *decode.candidate(0, i, j)) for i in range(12) for j in range(4)]
    scored = Scored(
        spec=spec,
        prompt=np.array([i for i, *_ in drawn]),
        rewards=np.array([float(good) for *_, good in drawn]),
        values=[values for _, _, values, _ in drawn],
        remaining=[np.arange(len(tokens), 0, -1.0) for _, tokens, _, _ in drawn],
        joints=np.full((12, 2, 2), 0.25),
        answers=[str(good) for *_, good in drawn],
    )
    return calibration_report(scored, steps=(0, 6, 60), prune_step=6, k=4)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("evaluation")
    config = EvaluationConfig(
        limit=LIMIT, num_generations=4, thresholds=(0.4,), taus=(0.8,), betas=(0.05,), sequential_betas=(0.1,),
        mean_ks=(2,), resamples=50, live="prune 0.4",
    )  # fmt: skip
    about = {"model": "a <b> model"}
    made = Evaluation(out, config, decode=FakeDecoder(), judge=judge, states=STATES, about=about)
    made.run(calibration=calibration())
    write_inference_report(out)
    return out


def test_votes_that_nobody_casts_are_said_to_be_none(folder: Path, tmp_path: Path) -> None:
    """As of texts that mark their answers otherwise: each majority is the first candidate then."""
    found = json.loads((folder / "evaluation.json").read_text())
    said = "% of the candidates have an answer in <answer> tags or \\boxed{}; the others have no vote"
    assert found["answered"] == 1.0
    assert not any(said in line for line in verdict(found))
    assert any(line.startswith(f"0{said}") for line in verdict({**found, "answered": 0.0}))


def test_the_page_is_one_file_that_asks_for_nothing(folder: Path) -> None:
    page = (folder / "report.html").read_text()
    assert not re.search(r"(?:src|href)\s*=\s*[\"']?(?!#|\"#)https?:|@import|url\((?!#)", page)
    assert "a &lt;b&gt; model" in page
    assert "<b> model" not in page
    assert page.count("<svg") == 2 + 2 + 1 + 2 + 1 + 1  # pareto, peers, blend, seconds, reliability, AUC
    for name in (
        "Policies",
        "Without a head",
        "Held-out operating points",
        "Best-of-n",
        "Calibration",
        "Selection at K = 4",
    ):
        assert f"<h2>{name}</h2>" in page


def test_tables_hold_the_numbers_of_the_json(folder: Path) -> None:
    found = json.loads((folder / "evaluation.json").read_text())
    table = (folder / "table.md").read_text()
    prune = next(policy for policy in found["policies"] if policy["name"] == "prune 0.4")
    line = next(line for line in table.splitlines() if line.startswith("| prune 0.4"))
    assert f"{prune['accuracy']['mean']:.3f} ± {prune['accuracy']['sd']:.3f}" in line
    assert f"{prune['matched']['accuracy']:.3f}<br>{prune['matched']['name']}" in line
    with (folder / "policies.csv").open() as file:
        rows = {row["name"]: row for row in csv.DictReader(file)}
    assert float(rows["prune 0.4"]["saving.low"]) == prune["saving"]["low"]
    assert float(rows["prune 0.4"]["live.wall_s.mean"]) == prune["live"]["wall_s"]["mean"]
    assert rows["early-stop 0.8"]["live.wall_s.mean"] == ""


def test_figures_are_there_as_png_and_svg(folder: Path) -> None:
    names = {path.name for path in (folder / "figures").iterdir()}
    assert names == {
        f"{name}.{kind}"
        for name in ("pareto", "peers", "blend", "seconds", "reliability", "auc")
        for kind in ("png", "svg")
    }


def test_best_of_n_alone_is_black() -> None:
    """Its caption says so, and `until` was black too."""
    assert INK not in COLOURS.values()


def test_what_is_said_of_policies_without_a_head_is_of_those_that_there_are(folder: Path) -> None:
    """DeepConf needs the tokens' confidences, and a check a function."""
    found = json.loads((folder / "evaluation.json").read_text())
    figure, note = peers_figure(found), peers_table(found).note
    assert figure is not None
    assert not any(name in text for name in ("DeepConf", "check") for text in (figure.caption, note))
    vote = next(policy for policy in found["policies"] if policy["family"] == "esc")
    found["policies"].append({**vote, "family": "deepconf", "name": "deepconf 50"})
    figure = peers_figure(found)
    assert figure is not None
    assert all("DeepConf" in text for text in (figure.caption, peers_table(found).note))


def test_the_same_json_gives_the_same_files(folder: Path, tmp_path: Path) -> None:
    with empty_files():
        write_inference_report(folder, tmp_path)
    for name in ("report.html", "table.md", "policies.csv"):
        assert (tmp_path / name).read_bytes() == (folder / name).read_bytes()


def test_the_verdict_names_what_was_chosen_without_seeing_its_prompts(folder: Path) -> None:
    found = json.loads((folder / "evaluation.json").read_text())
    said = verdict(found)
    chosen = next(p for p in found["held_out"] if (p["objective"], p["family"]) == ("row_forwards", "any"))
    assert chosen["folds"][0]["setting"] in said[0]
    assert percent(chosen["saving"]) in said[0]
    assert said[-1].startswith("Within-prompt AUC after 6 tokens")


def test_the_verdict_leads_where_the_head_must_not_decode(folder: Path) -> None:
    found = json.loads((folder / "evaluation.json").read_text())
    gate = {
        "verdict": "failed",
        "k": 4,
        "value": 0.4,
        "random": 0.5,
        "gain": -0.1,
        "low": -0.2,
        "high": 0.0,
        "prompts": 12,
    }
    found["calibration"]["viability"] = {**(found["calibration"].get("viability") or {}), **gate}
    said = verdict(found)
    assert said[0] == viability_words(found["calibration"]["viability"])
    assert said.count(said[0]) == 1
    assert said[1].startswith("Chosen on one half of the prompts")


def test_columns_of_seconds_are_left_out_where_nothing_was_run_live(folder: Path) -> None:
    found = json.loads((folder / "evaluation.json").read_text())
    assert policies_table(found).head[-1] == "CPU saved"
    assert {len(row) for row in policies_table(found).rows} == {12}
    for policy in found["policies"]:
        policy["live"] = None
    table = policies_table(found)
    assert table.head[-1] == "from it"
    assert {len(row) for row in table.rows} == {9}
    assert "Seconds" not in table.note


def test_words() -> None:
    assert percent({"value": 0.634, "low": -0.001, "high": 0.7}) == "63 % [0 %, 70 %]"
    assert difference({"value": -0.0001, "low": None, "high": None}) == "+0.000"
    assert share({"mean": 0.5, "sd": None}) == "50 %"
    assert share({"mean": None, "sd": None}) == "-"


def test_a_folder_without_an_evaluation(tmp_path: Path) -> None:
    with pytest.raises(StateFileError, match="rollwise head evaluate"):
        write_inference_report(tmp_path)
    (tmp_path / "evaluation.json").write_text('{"format": "other"}')
    with pytest.raises(StateFileError, match="holds no evaluation"):
        write_inference_report(tmp_path)
