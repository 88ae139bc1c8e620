"""The page of a file of chosen answers: `rollwise report consistency/x.jsonl`."""

import json
from pathlib import Path

import pytest

pytest.importorskip("openai")
pytest.importorskip("matplotlib")

from fake_openai import FakeOpenAI

from rollwise.cli import main
from rollwise.errors import StateFileError
from rollwise.reports import write_consistency_report
from rollwise.reports.inference import consistency_words

ANSWERS = {"sure <b>": "7777", "torn": "7775555555", "none": "xxxxxxxxxx"}


def scripted(prompt: str, i: int) -> str:
    letter = ANSWERS[prompt][i]
    return f"so {letter}" if letter.isdigit() else "x" * 50


@pytest.fixture
def file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    data, out = tmp_path / "data.jsonl", tmp_path / "answers.jsonl"
    data.write_text("".join(json.dumps({"id": one, "prompt": one, "answer": "7"}) + "\n" for one in ANSWERS))
    with FakeOpenAI(scripted) as fake:
        command = ["consistency", str(data), "--base_url", fake.base_url, "--model", "tiny", "--num_generations", "10"]
        assert main([*command, "--ahead", "0", "--price_in", "2", "--price_out", "10", "--out", str(out)]) == 0
    capsys.readouterr()
    return out


def test_the_page(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(file)]) == 0
    page = file.with_suffix(".html")
    assert capsys.readouterr().out == f"{page}\n"
    text = page.read_text()
    numbers = json.loads(Path(f"{file}.summary.json").read_text())
    for part in (
        "Votes: answers.jsonl",
        "<dt>answers compared as</dt><dd>text</dd>",
        f"adaptive cost {numbers['cost_ratio']:.2f} of what all 10 at once would have.",
        "1 of 3 chosen answers are right (33.3%), by the recorded answer, compared as text.",
        f">{numbers['prompt_tokens']:,}<",
        f">{numbers['full']['prompt_tokens']:,.0f}<",
        f">{numbers['prompt_tokens'] + numbers['completion_tokens']:,}<",
        f">{numbers['money']:,.4f}<",
        "sure &lt;b&gt;",
        "5 (7), 7 (3)",
        "- (10)",
        "share of samples with the chosen answer",
    ):
        assert part in text, part
    assert "<b>" not in text
    assert text.count("<svg") == 2


def test_where_stopping_did_not_pay_the_page_says_so(file: Path, tmp_path: Path) -> None:
    summary = Path(f"{file}.summary.json")
    numbers = json.loads(summary.read_text())
    said = "adaptive cost 1.4 times what all 10 at once would have"
    summary.write_text(json.dumps({**numbers, "verdict": said, "prompts": 2}))
    text = write_consistency_report(file, tmp_path / "pages/page.html").read_text()
    assert said in text
    assert "The numbers are of 2 prompts, and the file holds 3: run the same command again." in text


def test_an_endpoint_that_counts_no_tokens(tmp_path: Path) -> None:
    data, out = tmp_path / "data.jsonl", tmp_path / "o.jsonl"
    data.write_text(json.dumps({"prompt": "torn"}) + "\n")
    with FakeOpenAI(scripted, count_tokens=False) as fake:
        command = ["consistency", str(data), "--base_url", fake.base_url, "--model", "tiny", "--num_generations", "10"]
        assert main([*command, "--out", str(out)]) == 0
    text = write_consistency_report(out).read_text()
    assert ">requests<" in text
    assert "tokens in<" not in text


def test_only_so_many_prompts_are_shown(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consistency_words, "MOST_ROWS", 2)
    text = write_consistency_report(file).read_text()
    assert "The 2 of 3 prompts that agree least." in text
    assert "sure &lt;b&gt;" not in text


def test_other_files_are_named(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(file.parent / "data.jsonl")]) == 1
    error = capsys.readouterr().err
    assert "it is no file of `rollwise consistency`; name one" in error
    assert error.count("\n") == 1
    Path(f"{file}.summary.json").unlink()
    with pytest.raises(StateFileError, match="run the same `rollwise consistency` again, which writes it"):
        write_consistency_report(file)


def test_agreement_of_three_in_ten_is_drawn_from_0_3_on() -> None:
    """In binary 3/10 is below a tenth's edge that is computed as 0.1 + 0.1 + 0.1."""
    from matplotlib.figure import Figure

    from rollwise.reports.inference.consistency_page import _draw_agreement

    lines = [{"answers": ["4"] * k + [None] * (10 - k), "chosen": "4" if k else None} for k in range(11)]
    ax = Figure().subplots()
    _draw_agreement(lines, ax)
    assert [bar.get_height() for bar in ax.patches] == [1.0] * 9 + [2.0]
