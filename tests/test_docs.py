"""What the README and the docs show, runs."""

import json
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

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


def test_the_method_that_the_docs_write_keeps_the_contract(tmp_path: Path) -> None:
    (tmp_path / "test_own.py").write_text("\n".join(blocks("docs/howto/own-method.md")))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stdout


def test_the_tutorials_data_and_the_reward_of_its_how_to_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    exec(blocks("docs/tutorial.md")[0], {})
    rows = [json.loads(line) for line in (tmp_path / "my.jsonl").read_text().splitlines()]
    assert len(rows) == 200
    assert len({row["type"] for row in rows}) == 4
    names: dict = {}
    for block in blocks("docs/howto/rewards.md"):
        exec(block, names)
    right = [row["answer"] for row in rows]
    texts = [f"It is {answer}" for answer in right]
    assert names["accuracy"]([], texts, right) == [1.0] * 200
    chat = [[{"role": "assistant", "content": text}] for text in texts]  # the tutorial's problems are chat messages
    assert names["accuracy"]([], chat, right) == [1.0] * 200
    assert names["curriculum"].reward_spec.low == -1


def test_every_curriculum_is_on_the_page_of_methods() -> None:
    import rollwise as rw
    from rollwise.cli.listings import methods_page

    assert (ROOT / "docs/methods.md").read_text() == methods_page(), "rollwise curricula --markdown > docs/methods.md"
    assert "docs/methods.md" in (ROOT / "README.md").read_text()
    for kind in rw.CURRICULA.values():
        assert f"`{kind.__name__}`" in methods_page()
        assert kind.paper
        assert kind.needs


def test_the_readme_is_short_and_uses_no_word_of_our_own_before_it_is_defined() -> None:
    text = (ROOT / "README.md").read_text()
    assert len(text.split()) <= 700
    assert not re.findall(r"\b(?:lane|gate|probe|rail)s?\b", text, re.IGNORECASE)
    assert re.search(r"ticket: one prompt", text)
    assert text.index("pip install") < text.index("## Your own data")
    assert "make demo" in text
    assert "make test" in text


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


def test_snippets_can_be_pasted(monkeypatch: pytest.MonkeyPatch) -> None:
    from rollwise.engines import ray_actor

    for page in [*(ROOT / "docs").glob("*.md"), *(ROOT / "docs/howto").glob("*.md")]:
        before = ""
        for block in blocks(str(page.relative_to(ROOT))):
            before += block
            if "CurriculumGRPOTrainer(" in block:
                assert "import CurriculumGRPOTrainer" in before, page
            assert "rollwise as rw" in before or not re.search(r"\brw\.", block), page
    made: list = []
    monkeypatch.setattr(ray_actor, "start", lambda name, make, folder: made.append(make()))
    monkeypatch.setattr(ray_actor, "connect", lambda name: None)
    exec(blocks("docs/service.md")[1], {})
    assert len(made[0].ask(8)) == 8
    torch_data = pytest.importorskip("torch.utils.data")
    torchdata = ModuleType("torchdata.stateful_dataloader")
    torchdata.StatefulDataLoader = torch_data.DataLoader  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torchdata", ModuleType("torchdata"))
    monkeypatch.setitem(sys.modules, "torchdata.stateful_dataloader", torchdata)
    names: dict = {}
    exec(next(block for block in blocks("docs/engines.md") if "StatefulDataLoader" in block), names)
    assert len(names["batch"]) == 32


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


def test_the_page_on_the_report_names_its_parts_as_the_report_does() -> None:
    text = (ROOT / "docs/report.md").read_text()
    table = text.partition("## Figure by figure")[2].partition("## ")[0]
    rows = [line.split("|")[1].strip() for line in table.splitlines() if line.startswith("| ")][1:]
    named = {name for row in rows for name in row.split(", ")} | set(
        re.findall(r"^\d\. \*\*(.*?)\*\*", text, re.MULTILINE)
    )
    assert len(named) > 20
    sources = "".join(path.read_text() for path in (ROOT / "src/rollwise/reports").rglob("*.py"))
    assert not [name for name in named if f'"{name}"' not in sources and f">{name}<" not in sources]


def test_the_notebook_is_small_was_run_and_runs() -> None:
    path = ROOT / "examples/notebook.ipynb"
    assert path.stat().st_size < 200_000
    cells = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    assert not [out for cell in cells for out in cell["outputs"] if out["output_type"] == "error"]
    names: dict = {}
    for cell in cells:
        source = "".join(cell["source"])
        if "plt.subplots" not in source:
            exec(source, names)
    assert names["shares"]["recommended"].mean() > 2 * names["shares"]["uniform"].mean()


def test_no_link_is_dead() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "benchmarks/results").glob("*.md")]
    for page in pages:
        text = page.read_text()
        for target, _, anchor in re.findall(r"\]\((?!https?:)([^)#\s]*)(#([^)]*))?\)", text):
            file = (page.parent / target).resolve() if target else page
            assert file.exists(), (page.name, target)
            if anchor and file.suffix == ".md":
                heads = re.findall(r"^#+ (.*)$", file.read_text(), re.MULTILINE)
                anchors = {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}
                assert anchor in anchors, (page.name, target, anchor)
