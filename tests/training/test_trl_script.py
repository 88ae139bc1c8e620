"""examples/trl_script.py: a plain TRL script in a few changed lines, whose run is whole."""

import json
from pathlib import Path

from processes import Command, script
from toys import toy_model, toy_tokenizer

from rollwise.cli import main

SCRIPT = Path(__file__).parents[2] / "examples/trl_script.py"


def test_it_changes_at_most_ten_lines_of_a_plain_script() -> None:
    lines = SCRIPT.read_text().splitlines()
    new = [line for line in lines if "# rollwise" in line and not line.startswith('"""')]
    assert 3 <= len(new) <= 10
    rest = "\n".join(line for line in lines[7:] if line not in new)
    assert "rollwise" not in rest
    assert "curriculum" not in rest.lower()


def test_its_run_is_whole(tmp_path: Path) -> None:
    toy_model().save_pretrained(tmp_path / "tiny")
    toy_tokenizer().save_pretrained(tmp_path / "tiny")
    environment = {"HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": ""}
    done = Command(str(tmp_path / "tiny"), "3", code=script(SCRIPT), folder=tmp_path, environment=environment)
    assert done.wait() == 0, done.said[-3000:]
    run = tmp_path / "runs/sums"
    assert main(["report", str(run)]) == 0
    page = (run / "report.html").read_text()
    assert "Damaged or missing" not in page
    assert "<dt>curriculum</dt><dd>recommended</dd>" in page
    groups = [json.loads(line) for line in (run / "rollouts.jsonl").read_text().splitlines()]
    assert {group["category"] for group in groups} <= {f"{n} digits" for n in (1, 2, 3, 4)}
    assert main(["watch", str(run), "--once"]) == 0
