"""What the README and the docs show, runs."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def blocks(name: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / name).read_text(), re.DOTALL)


def test_the_readmes_own_loop_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    loop = next(block for block in blocks("README.md") if "for step in range" in block)
    names = {"rollout_and_score": lambda prompt, n: [float(i % 2) for i in range(n)]}
    exec(loop, names)
    assert names["curriculum"].metrics()["told"] == 200  # type: ignore[attr-defined]
    assert (tmp_path / "curriculum.json").exists()


def test_the_method_of_the_design_notes_keeps_the_contract(tmp_path: Path) -> None:
    (tmp_path / "test_least_tried.py").write_text("\n".join(blocks("docs/design.md")))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stdout


def test_every_curriculum_is_in_the_readme_and_the_page_of_methods() -> None:
    import rollwise as rw
    from rollwise.cli.listings import methods_page

    assert (ROOT / "docs/methods.md").read_text() == methods_page(), "rollwise curricula --markdown > docs/methods.md"
    for kind in rw.CURRICULA.values():
        assert f"`{kind.__name__}`" in (ROOT / "README.md").read_text()
        assert kind.paper
        assert kind.needs


def test_the_page_on_judges_runs() -> None:
    names = {
        "generate": lambda context: "\\boxed{0.15}",
        "rollout_and_score": lambda prompt, n: [float((i + len(prompt)) % 2) for i in range(n)],
        "reinforce": lambda lessons: taught.append(len(lessons)),
    }
    taught: list[int] = []
    for block in blocks("docs/judges.md"):
        if "CurriculumGRPOTrainer" not in block:
            exec(block.replace("range(100)", "range(10)"), names)
    assert len(taught) == 10
    assert sum(taught) > 30
    curriculum = names["curriculum"]
    assert len(curriculum.ask(8)) == 8  # type: ignore[attr-defined]


def test_the_page_on_using_curricula_runs() -> None:
    import rollwise as rw

    records = [{"prompt": f"{i}+{i}=", "category": f"c{i % 3}"} for i in range(200)]
    names = {
        "rw": rw,
        "curriculum": rw.LILO(rw.PromptPool.from_records(records), candidates=16, seed=0),
        "rollout_and_score": lambda prompt, n: [float((i + len(prompt)) % 2) for i in range(n)],
        "train_on": lambda groups: trained.append(len(groups)),
        "make_item": lambda rng, i: {"prompt": f"{rng.integers(10**6)}+{i}=", "category": "sums"},
    }
    trained: list[int] = []
    for block in blocks("docs/curricula.md"):
        exec(block.replace("range(100)", "range(10)"), names)
    assert trained == [16] * 10
    assert names["curriculum"].metrics()["coverage"] == 0  # type: ignore[attr-defined]


def test_the_pages_on_inference_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tiny import random_head, tiny

    monkeypatch.chdir(tmp_path)
    model, tokenizer = tiny()
    random_head(model, tokenizer).save("head.safetensors")
    names: dict = {}
    exec(blocks("docs/inference.md")[0].replace("max_new_tokens=512", "max_new_tokens=16"), names)
    answers = list(names["answer"](model, tokenizer, ["a", "b"], ["1,2:3=", "4:4="]))
    assert {id_ for id_, _, _ in answers} == {"a", "b"}
    assert all(0 < cost <= 8 * 16 for _, _, cost in answers)
    for block in blocks("docs/inference-serving.md"):
        exec(block, {})


@pytest.mark.parametrize("page", sorted(path.name for path in (ROOT / "docs").glob("*.md")))
def test_pages_link_to_pages_that_are_there(page: str) -> None:
    for link in re.findall(r"\]\(([\w./-]+\.md)\)", (ROOT / "docs" / page).read_text()):
        assert (ROOT / "docs" / link).is_file(), link


def test_no_link_is_dead() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "benchmarks/results").glob("*.md")]
    for page in pages:
        text = page.read_text()
        for target, _, anchor in re.findall(r"\]\((?!https?:)([^)#\s]*)(#([^)]*))?\)", text):
            file = (page.parent / target).resolve() if target else page
            assert file.exists(), (page.name, target)
            if anchor and file.suffix == ".md":
                heads = re.findall(r"^#+ (.*)$", file.read_text(), re.MULTILINE)
                anchors = {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}
                assert anchor in anchors, (page.name, target, anchor)
