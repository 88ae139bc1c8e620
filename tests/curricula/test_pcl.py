"""PCL: Table 5's numbers, the judges by name, what it picks, and a judge of one's own."""

import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rollwise as rw
from rollwise.judges import JUDGES, make_judge


class Fixed(rw.Judge):
    def __init__(self, predicts: Any, values: list[float]) -> None:
        self.predicts, self.values = predicts, values

    def predict(self, candidates: rw.Prompts) -> np.ndarray:
        return np.array(self.values)[candidates.slots]


def graded_pool(n: int) -> rw.PromptPool:
    """Prompts whose pass rate is the first number of their vector; the others tell nothing."""
    rng = np.random.default_rng(0)
    vectors = np.column_stack([np.linspace(0.0, 1.0, n), rng.standard_normal((n, 3))])
    return rw.PromptPool(ids=[f"p{i}" for i in range(n)], columns={"embedding": vectors})


def test_the_defaults_are_those_of_table_5() -> None:
    """METIS's Table 5: multiplier 8, head 512, learning rate 1e-4, batch 64, 1 update a step, target 0.5; A.5: MSE."""
    pytest.importorskip("torch")
    options = rw.PCL().options
    assert (options["candidate_multiplier"], options["target"], options["explore"]) == (8, 0.5, 0.0)
    assert options["rails"] is None
    assert options["judge"]["kind"] == "ValueModelJudge"
    judge = options["judge"]["options"]
    assert (judge["hidden"], judge["learning_rate"], judge["batch_size"], judge["updates_per_step"]) == (
        512,
        1e-4,
        64,
        1,
    )
    assert (judge["predicts"], judge["model"], judge["frozen"]) == ("pass-rate", None, False)


_FRESH = """
    import sys
    import rollwise as rw
    assert "torch" not in sys.modules and "rollwise.models" not in sys.modules
    print(type(rw.PCL(judge=sys.argv[1], judge_options={"head": sys.argv[2]} if sys.argv[2] else None).maker).__name__)
"""


@pytest.mark.parametrize(
    ("name", "kind", "extra"),
    [
        ("frozen", "EmbeddingJudge", "numpy"),
        ("success-head", "SuccessHeadJudge", "torch"),
        ("text", "TextJudge", "sklearn"),
        ("value-model", "ValueModelJudge", "torch"),
    ],
)
def test_every_name_works_in_a_fresh_process(name: str, kind: str, extra: str, tmp_path: Path) -> None:
    """After `import rollwise` alone, which imports no torch."""
    pytest.importorskip(extra)
    assert name in JUDGES
    head = ""
    if name == "success-head":
        import torch

        from rollwise.inference import HeadSpec, SuccessHead

        spec = HeadSpec(edges=(0, 4))
        model = {"architecture": "X", "hidden_size": 2, "num_hidden_layers": 1, "tokenizer": "y"}
        head = str(SuccessHead(torch.zeros(spec.size, 2), spec, model).save(tmp_path / "head.safetensors"))
    command = [sys.executable, "-c", textwrap.dedent(_FRESH), name, head]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stdout.strip() == kind, done.stderr


def test_without_torch_it_names_what_needs_numpy_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(rw.MissingExtraError, match=r'pip install "rollwise\[train\]".*EmbeddingJudged'):
        rw.PCL()


def test_without_a_policy_it_says_what_to_do() -> None:
    pytest.importorskip("torch")
    with pytest.raises(rw.ConfigError, match=r"judge_options: .model.*embedding-judge"):
        rw.PCL(graded_pool(8))


def test_it_takes_what_is_nearest_to_the_target() -> None:
    """Of pass rates 0, 0.3, 0.6, 1 the two nearest to 1/2 are 0.6 and 0.3; to 0.9, 1 and 0.6."""
    pool = rw.PromptPool(ids=["a", "b", "c", "d"])
    judge = Fixed("pass-rate", [0.0, 0.3, 0.6, 1.0])
    assert [t.prompt_id for t in rw.PCL(pool, judge=judge, rails="off").ask(2)] == ["c", "b"]
    assert [t.prompt_id for t in rw.PCL(pool, judge=judge, target=0.9, rails="off").ask(2)] == ["d", "c"]


def test_of_continuous_rewards_it_takes_the_greatest_variance() -> None:
    pool = rw.PromptPool(ids=["a", "b", "c", "d"])
    judge = Fixed("variance", [0.0, 0.2, 0.1, 0.25])
    for reward in (None, "continuous"):
        tickets = rw.PCL(pool, judge=judge, reward=reward, rails="off").ask(2)  # type: ignore[arg-type]
        assert [(t.prompt_id, t.predicted_variance) for t in tickets] == [("d", 0.25), ("b", 0.2)]
    assert rw.PCL(judge="frozen", reward="continuous").options["judge"]["options"]["predicts"] == "variance"


@pytest.mark.parametrize("predicts", ["pass-rate", "variance"])
def test_the_embedding_judge_finds_the_middling_prompts(predicts: Any) -> None:
    """Uniform's prompts lie 1/4 from a pass rate of 1/2 on average; these, once it has learnt, half that."""
    pool = graded_pool(400)
    rng = np.random.default_rng(1)
    judged = rw.EmbeddingJudged(pool, predicts=predicts, seed=0)
    away = []
    for _ in range(20):
        tickets = judged.ask(16)
        rates = pool.columns["embedding"][pool.slots_of([t.prompt_id for t in tickets]), 0]
        judged.tell([rw.Outcome(t.id, (rng.random(8) < p).astype(float)) for t, p in zip(tickets, rates, strict=True)])
        away.append(np.abs(rates - 0.5).mean())
    assert 0.2 < away[0] < 0.3
    assert np.mean(away[-5:]) < 0.12


def test_the_embedding_judge_under_both_names_asks_the_same() -> None:
    """It chooses as PCL does, given the same judge."""
    curricula = (
        rw.EmbeddingJudged(graded_pool(60), hidden=8),
        rw.PCL(graded_pool(60), judge="frozen", judge_options={"hidden": 8}),
    )
    asked: list[list[str]] = [[], []]
    for _ in range(4):
        for curriculum, ids in zip(curricula, asked, strict=True):
            tickets = curriculum.ask(4)
            ids += [t.prompt_id for t in tickets]
            curriculum.tell([rw.Outcome(t.id, [1, int(t.prompt_id[1:]) % 2]) for t in tickets])
    assert asked[0] == asked[1]
    assert rw.EmbeddingJudged().options == rw.PCL(judge="frozen").options
    assert rw.EmbeddingJudged().rails is None


def test_before_any_outcome_there_is_no_prediction() -> None:
    pcl = rw.EmbeddingJudged(graded_pool(40))
    first = pcl.ask(4)
    assert {t.lane for t in first} == {"unjudged"}
    assert all(t.predicted is None or np.isnan(t.predicted) for t in first)
    pcl.tell([rw.Outcome(t.id, [1, 0]) for t in first])
    assert {t.lane for t in pcl.ask(4)} == {"judged"}


def test_judges_by_name_as_a_configuration_file_has_them() -> None:
    made = rw.make_curriculum("pcl", judge="frozen", judge_options={"hidden": 0}, reward="continuous")
    assert made.options["judge"]["options"]["hidden"] == 0
    pool = rw.PromptPool.from_records([{"prompt": f"{i}+{i}="} for i in range(20)])
    with pytest.raises(rw.MissingColumnError, match="rollwise.models.add_features"):
        made.bind(pool)
    pytest.importorskip("sklearn")
    by_text = rw.make_curriculum("pcl", judge="text")
    by_text.bind(pool)
    assert len(by_text.ask(3)) == 3


def test_a_judge_of_ones_own_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(JUDGES, "mine", lambda predicts, level: Fixed(predicts, [level]))
    judge = make_judge("mine", predicts="variance", level=0.2)
    assert judge.predict(rw.Prompts(rw.PromptPool(ids=["a"]), np.array([0]))).tolist() == [0.2]
    assert rw.PCL(judge="mine", judge_options={"level": 0.2}).maker.predicts == "pass-rate"


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"judge": "nobody"}, "unknown judge 'nobody'"),
        ({"judge": "frozen", "judge_options": {"colour": 1}}, "colour"),
        ({"judge_options": [1]}, "judge_options must map"),
        ({"judge": Fixed("variance", []), "judge_options": {"hidden": 0}}, "given by name"),
        ({"judge": Fixed("variance", []), "reward": "binary"}, "wants a judge of pass-rate"),
        (
            {"judge": "frozen", "judge_options": {"predicts": "variance"}, "reward": "binary"},
            "wants a judge of pass-rate",
        ),
        ({"reward": "graded"}, "reward must be 'binary', 'continuous' or None"),
        ({"judge": 3}, "judge must be a rollwise Judge"),
    ],
)
def test_what_can_not_be_is_said(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(rw.ConfigError, match=reason):
        rw.PCL(**options)


@pytest.mark.parametrize("maker", ["rollwise.nowhere:Judge", "rollwise.judges:Nobody", "no colon", ""])
def test_a_name_that_leads_nowhere_is_said(maker: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(JUDGES, "mine", maker)
    with pytest.raises(rw.ConfigError, match="judge 'mine': JUDGES has .* which can't be loaded"):
        rw.PCL(judge="mine")


def test_a_judge_of_ones_own_by_the_name_of_its_module(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(JUDGES, "mine", "rollwise.judges.embedding:EmbeddingJudge")
    assert isinstance(rw.PCL(judge="mine").maker, rw.EmbeddingJudge)


def test_a_judge_without_files_writes_none(tmp_path: Path) -> None:
    pcl = rw.Mixture(graded_pool(20), lanes={"p": (1.0, rw.EmbeddingJudged())})
    pcl.tell([rw.Outcome(t.id, [1, 0]) for t in pcl.ask(4)])
    pcl.save_files(tmp_path / "files")
    pcl.load_files(tmp_path / "files")
    pcl.start_from("anywhere")
    assert list(tmp_path.iterdir()) == []
