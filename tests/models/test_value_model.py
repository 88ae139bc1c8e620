"""The value model: its loss and first step by hand, its batches, what it shares, and its files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rollwise as rw
from rollwise.models import EmbeddedConfig, ValueModelJudge
from rollwise.models.embedded import build_policy
from rollwise.testing import CurriculumConformance, untagged

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
SMALL = EmbeddedConfig(hidden_size=16, num_layers=1, num_heads=2, intermediate_size=16, max_length=24)
POOL = rw.PromptPool(ids=[f"p{i}" for i in range(40)], prompts=[f"{i % 10}+{i}=" for i in range(40)])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("policy")
    for part in build_policy(SMALL, seed=1):
        part.save_pretrained(path)
    return path


def bound(folder: Path | None, **options: Any) -> ValueModelJudge:
    judge = ValueModelJudge(folder, **{"hidden": 8, "learning_rate": 1e-2, **options}).fresh()
    judge.bind(POOL, seed=2)
    return judge


def taught(judge: ValueModelJudge, steps: int = 1, n: int = 8) -> ValueModelJudge:
    """Told of prompts whose pass rate is their first digit over 9."""
    for step in range(steps):
        slots = (np.arange(n) * 3 + judge.updates + step) % len(POOL)
        slots = np.unique(slots)
        mean = slots % 10 / 9
        judge.learn(rw.Prompts(POOL, slots), mean, mean * (1 - mean), np.full(len(slots), 8.0))
    return judge


def everything() -> rw.Prompts:
    return rw.Prompts(POOL, np.arange(len(POOL)))


def weights(judge: ValueModelJudge) -> dict[str, Any]:
    assert judge.network is not None
    return {name: weight.detach().clone() for name, weight in judge.network.trained().items()}


class TestPCLWithItsValueModel(CurriculumConformance):
    """The whole contract; a state is taken over from a judge that is still there, so no files are needed."""

    @pytest.fixture(autouse=True, scope="class")
    def begin(self, request: pytest.FixtureRequest, folder: Path) -> None:
        request.cls.judge = ValueModelJudge(folder, hidden=8)

    def make(self, pool: rw.PromptPool | None = None, **core: Any) -> rw.Curriculum:
        judge: ValueModelJudge = self.judge  # type: ignore[attr-defined]
        return rw.PCL(pool, judge=judge, candidate_multiplier=2, **core)


# ---- the numbers ----


def test_the_defaults_are_those_of_table_5() -> None:
    options = ValueModelJudge().options
    names = ("hidden", "learning_rate", "batch_size", "updates_per_step", "frozen", "predicts")
    assert [options[name] for name in names] == [512, 1e-4, 64, 1, False, "pass-rate"]


@pytest.mark.parametrize("frozen", [False, True])
def test_the_error_and_the_first_step_by_hand(folder: Path, frozen: bool) -> None:
    """With a last layer of zeros every prediction is sigmoid(0) = 1/2.

    Told are 1 by 2 rollouts and 1/2 by 6: the weighted squared error is (2 (1/2)^2 + 6 * 0) / 8 = 1/16. Its slope in
    the last bias is 2/8 * 2 (1/2 - 1) * 1/4 = -1/16, and AdamW's first step goes by its rate, 0.01, against the slope's
    sign. With inner weights of zero slope, for the last ones are 0, these only decay, by a factor 1 - 0.01 * 0.01.
    """
    judge = bound(folder, frozen=frozen)
    network = judge._ready()
    last = network.head[2]
    with torch.no_grad():
        last.weight.zero_()
        last.bias.zero_()
    before = weights(judge)
    told = rw.Prompts(POOL, np.array([3, 4]))
    judge.learn(told, np.array([1.0, 0.5]), np.array([0.0, 0.25]), np.array([2.0, 6.0]))
    assert judge.metrics() == {"judge_updates": 1.0, "judge_error": pytest.approx(1 / 16)}
    after = weights(judge)
    assert after["head.2.bias"].item() == pytest.approx(0.01, rel=1e-4)
    assert after["head.0.weight"].numpy() == pytest.approx(before["head.0.weight"].numpy() * (1 - 1e-4), rel=1e-5)
    assert (set(after) == {"head.0.weight", "head.0.bias", "head.2.weight", "head.2.bias"}) == frozen


def test_it_reads_the_named_column_in_place_of_the_prompts(folder: Path) -> None:
    """Where the column says the same of every prompt, so does the judge."""
    pool = rw.PromptPool(ids=POOL.ids, prompts=POOL.prompts, columns={"prose": ["7"] * len(POOL)})
    for column, different in (("prose", 1), (None, 8)):
        pcl = rw.PCL(pool, judge=ValueModelJudge(folder, hidden=8), judge_column=column)
        pcl.tell([rw.Outcome(ticket.id, [1.0, 0.0]) for ticket in pcl.ask(8)])
        assert len({ticket.predicted for ticket in pcl.ask(8)}) == different


def test_variances_stay_in_their_range(folder: Path) -> None:
    """With a last layer of zeros, half of 1/4; a group of one teaches no variance."""
    judge = bound(folder, predicts="variance")
    told = rw.Prompts(POOL, np.array([3]))
    judge.learn(told, np.array([1.0]), np.array([0.0]), np.array([1.0]))
    assert judge.updates == 0
    taught(judge)
    with torch.no_grad():
        judge._ready().head[2].weight.zero_()
        judge._ready().head[2].bias.zero_()
    assert judge.predict(told).tolist() == [0.125]


def test_a_pass_is_over_all_that_was_told_in_batches(folder: Path) -> None:
    """37 prompts in batches of 16 are 16, 16 and 5; two passes are six steps of AdamW."""
    judge = bound(folder, batch_size=16, updates_per_step=2, frozen=True)
    batches = judge._batches(np.arange(37), 0)
    assert [len(batch) for batch in batches] == [16, 16, 5]
    assert sorted(np.concatenate(batches).tolist()) == list(range(37))
    assert np.concatenate(batches).tolist() != list(range(37))
    assert [len(batch) for batch in judge._batches(np.arange(16), 0)] == [16]
    slots = np.arange(37)
    judge.learn(rw.Prompts(POOL, slots), slots % 10 / 9, np.zeros(37), np.full(37, 8.0))
    state = judge._ready().optimiser.state_dict()["state"]
    assert {float(entry["step"]) for entry in state.values()} == {6.0}


@pytest.mark.parametrize("frozen", [False, True])
def test_forward_passes_of_fewer_prompts_add_up_to_the_same(folder: Path, frozen: bool) -> None:
    whole, parts = (taught(bound(folder, frozen=frozen, forward_batch=size)) for size in (64, 3))
    assert whole.error == pytest.approx(parts.error, rel=1e-5)
    for name, weight in weights(whole).items():  # AdamW's first step is by signs: slopes of nothing but rounding differ
        assert (weight - weights(parts)[name]).abs().median() < 1e-5


@pytest.mark.parametrize("frozen", [False, True])
def test_it_learns_to_predict(folder: Path, frozen: bool) -> None:
    judge = bound(folder, frozen=frozen, hidden=32)
    assert np.isnan(judge.predict(everything())).all()
    before = weights(taught(judge)).items()
    taught(judge, 100, n=20)
    rates = np.arange(40) % 10 / 9
    assert np.corrcoef(judge.predict(everything()), rates)[0, 1] > 0.9
    backbone = [not torch.equal(old, weights(judge)[name]) for name, old in before if name.startswith("backbone")]
    assert (any(backbone), bool(backbone)) == (not frozen, not frozen)


# ---- what it shares, and what it leaves alone ----


def test_one_judge_serves_two_curricula_that_share_nothing_trained(folder: Path) -> None:
    maker = ValueModelJudge(folder, hidden=8, learning_rate=1e-2)
    one, two = (rw.PCL(POOL, judge=maker, seed=0, rails="off") for _ in range(2))
    one.tell([rw.Outcome(t.id, [1, 1]) for t in one.ask(4)])
    one.ask(1)
    assert (one.judge.updates, two.judge.updates, maker.updates) == (1, 0, 0)  # type: ignore[attr-defined]
    two.tell([rw.Outcome(t.id, [0, 0]) for t in two.ask(4)])
    two.ask(1)
    first, second = weights(one.judge), weights(two.judge)  # type: ignore[arg-type]
    assert all(first[name].data_ptr() != second[name].data_ptr() for name in first)
    assert (one.judge.predict(everything()) > two.judge.predict(everything())).all()


def test_the_head_follows_from_the_seed_and_torchs_generator_is_left_alone(folder: Path) -> None:
    torch.manual_seed(7)
    expected = torch.Generator().manual_seed(7)
    found = []
    for seed in (2, 2, 3):
        judge = ValueModelJudge(folder, hidden=8)
        judge.bind(POOL, seed)
        found.append(taught(judge).predict(everything()).tolist())
    assert found[0] == found[1] != found[2]
    assert torch.rand(3).tolist() == torch.rand(3, generator=expected).tolist()
    from rollwise.models.value_network import value_head

    one, same, other = (value_head(16, 8, seed)[0].weight for seed in (2, 2, 3))
    assert torch.equal(one, same)
    assert not torch.equal(one, other)
    assert one.abs().max() <= 1 / 16**0.5


def test_features_of_a_frozen_backbone_are_made_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from rollwise.models import value_network

    made: list[int] = []
    real = value_network.encoded_features

    def counted(model: Any, tokenizer: Any, encoded: Any, **options: Any) -> Any:
        made.append(len(encoded))
        return real(model, tokenizer, encoded, **options)

    monkeypatch.setattr(value_network, "encoded_features", counted)
    judge = taught(bound(folder, frozen=True), n=8)
    judge.predict(everything())
    judge.predict(everything())
    assert made == [8, 32, 0]


@pytest.mark.parametrize("frozen", [False, True])
def test_what_it_reads_and_learns_is_charged(folder: Path, frozen: bool) -> None:
    """2 P a token of the backbone to read it, 6 P to train on it; of the head a prompt. Frozen, each prompt once."""
    judge = bound(folder, frozen=frozen)
    assert judge.take_costs() == {}
    prompts = rw.Prompts(POOL, np.arange(8))
    tokens = sum(len(judge._ready().tokenizer(text)["input_ids"]) for text in prompts.texts)
    backbone = sum(weight.numel() for weight in judge._ready().backbone.parameters())
    head = 16 * 8 + 8 + 8 + 1
    judge.learn(prompts, np.full(8, 0.5), np.full(8, 0.25), np.full(8, 4))
    assert judge.take_costs() == {
        "context_tokens": tokens,
        "flops": (2 if frozen else 6) * backbone * tokens + 6 * head * 8,
    }
    judge.predict(prompts)
    read = 0 if frozen else tokens
    assert judge.take_costs() == {"context_tokens": read, "flops": 2 * backbone * read + 2 * head * 8}
    assert judge.take_costs() == {}


# ---- where it begins ----


def test_it_begins_with_the_policy_where_no_model_is_given(folder: Path) -> None:
    pcl = rw.PCL(judge="value-model", judge_options={"hidden": 8}, rails="off")
    lanes = {"a/b": (0.5, pcl), "u": (0.5, rw.Uniform())}
    for curriculum in (pcl, rw.Mixture(lanes=lanes, rails="off")):
        curriculum.start_from(str(folder))
        curriculum.bind(POOL)
        for _ in range(2):
            curriculum.tell([rw.Outcome(t.id, [1, 0]) for t in curriculum.ask(8)])
        updates = [value for name, value in curriculum.metrics().items() if name.endswith("judge_updates")]
        assert updates == [1.0]
    assert pcl.maker.model is None  # and so a state fits wherever the policy's folder lies
    with pytest.raises(rw.ConfigError, match="no model to begin with"):
        rw.PCL(POOL, judge="value-model")


def test_wrong_options_are_said(folder: Path) -> None:
    for wrong in ({"hidden": 0}, {"learning_rate": 0.0}, {"batch_size": 0}, {"updates_per_step": 0}, {"frozen": 1}):
        with pytest.raises(rw.ConfigError, match=next(iter(wrong))):
            ValueModelJudge(folder, **wrong)  # type: ignore[arg-type]
    with pytest.raises(rw.ConfigError, match="model"):
        ValueModelJudge(3)  # type: ignore[arg-type]


# ---- files ----


def play(curriculum: rw.Curriculum, steps: int) -> list[list[str]]:
    asked = []
    for _ in range(steps):
        tickets = curriculum.ask(6)
        asked.append([t.prompt_id for t in tickets])
        rewards = [[float(i < int(t.prompt_id[1:]) % 10) for i in range(9)] for t in tickets]
        curriculum.tell([rw.Outcome(t.id, r) for t, r in zip(tickets, rewards, strict=True)])
    return asked


def curricula(folder: Path, **options: Any) -> tuple[rw.Curriculum, rw.Curriculum]:
    """Two that know nothing of each other, one of them within a mixture's lane whose name is no file's."""
    given = {"model": str(folder), "hidden": 8, "learning_rate": 1e-2, **options}
    make = lambda seed: rw.Mixture(  # noqa: E731
        POOL,
        lanes={
            "../a": (0.75, rw.PCL(judge="value-model", judge_options=given, candidate_multiplier=2)),
            "u": (0.25, rw.Uniform()),
        },
        seed=seed,
        rails="off",
    )
    return make(0), make(9)


@pytest.mark.parametrize("frozen", [False, True])
def test_state_and_files_together_go_on_to_the_bit(folder: Path, tmp_path: Path, frozen: bool) -> None:
    straight, resumed = curricula(folder, frozen=frozen)
    play(straight, 4)
    state = json.loads(json.dumps(straight.state_dict(), allow_nan=False))
    straight.save_files(tmp_path / "files")
    assert len(json.dumps(state)) < 20_000
    assert [p.name for p in (tmp_path / "files").rglob("*") if p.is_file()] == ["value_model.safetensors"]
    resumed.load_state_dict(state)
    resumed.load_files(tmp_path / "files")
    assert play(resumed, 4) == play(straight, 4)
    assert resumed.metrics() == straight.metrics()
    assert untagged(resumed.state_dict()) == untagged(straight.state_dict())


def test_a_state_without_its_files_is_refused_when_used(folder: Path, tmp_path: Path) -> None:
    straight, resumed = curricula(folder)
    play(straight, 3)
    state = straight.state_dict()
    straight.save_files(tmp_path)
    resumed.load_state_dict(state)
    with pytest.raises(rw.StateError, match="load_files"):
        resumed.ask(6)
    with pytest.raises(rw.StateError, match="load_files"):
        resumed.save_files(tmp_path / "again")
    resumed.load_files(tmp_path)
    assert len(resumed.ask(6)) == 6


def test_files_of_another_moment_or_none_are_refused(folder: Path, tmp_path: Path) -> None:
    straight, resumed = curricula(folder)
    play(straight, 3)
    early = straight.state_dict()
    straight.save_files(tmp_path)
    play(straight, 1)
    late = straight.state_dict()
    resumed.load_state_dict(late)
    with pytest.raises(rw.StateError, match="of another moment"):
        resumed.load_files(tmp_path)
    with pytest.raises(rw.StateError, match="can't be read"):
        resumed.load_files(tmp_path / "nowhere")
    file = next(tmp_path.rglob("*.safetensors"))
    file.write_bytes(file.read_bytes()[:100])
    resumed.load_state_dict(early)
    with pytest.raises(rw.StateError, match="can't be read"):
        resumed.load_files(tmp_path)


def test_files_of_another_model_are_refused(folder: Path, tmp_path: Path) -> None:
    wide, narrow = bound(folder, hidden=8), bound(folder, hidden=4)
    taught(wide)
    wide.save_files(tmp_path)
    narrow.load_state_dict(wide.state_dict())
    with pytest.raises(rw.StateError, match="another model"):
        narrow.load_files(tmp_path)


def test_before_the_first_update_there_is_nothing_to_save(folder: Path, tmp_path: Path) -> None:
    judge, again = bound(folder), bound(folder)
    judge.save_files(tmp_path / "files")
    again.load_state_dict(judge.state_dict())
    again.load_files(tmp_path / "files")
    assert not (tmp_path / "files").exists()
    assert (judge.network, again.network) == (None, None)
    with pytest.raises(rw.StateError, match="damaged"):
        again.load_state_dict({"seed": 1})


@pytest.mark.parametrize("frozen", [False, True])
def test_another_pool_and_a_state_in_memory_need_no_files(folder: Path, frozen: bool) -> None:
    straight, _ = curricula(folder, frozen=frozen)
    play(straight, 3)
    saved, at_save = straight.state_dict(), straight.child("../a").judge  # type: ignore[attr-defined]
    before = at_save.predict(everything())
    smaller = POOL.minus(["p0", "p1"])
    straight.rebind(smaller)
    judge = straight.child("../a").judge  # type: ignore[attr-defined]
    assert judge.predict(everything()).tolist() == before.tolist()
    play(straight, 2)
    assert judge.predict(everything()).tolist() != before.tolist()
    assert at_save.predict(everything()).tolist() == before.tolist()  # nothing trained is shared
    straight.load_state_dict(saved)
    assert straight.child("../a").judge.predict(everything()).tolist() == before.tolist()  # type: ignore[attr-defined]
