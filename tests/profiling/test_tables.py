"""The table of pass rates: joined with another model's, added to a data set, trained with."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pytest
from rich.console import Console
from toys import make_trainer

import rollwise as rw
from rollwise.errors import ConfigError, MissingColumnError, PoolError, StateFileError
from rollwise.profiling import ProfileConfig, add_pass_rates, read_table, reference_pass_rates
from rollwise.profiling.profile import run_profile
from rollwise.profiling.tables import join_rates, table_rows, write_table


def run(options: dict[str, Any], out: Path, **changed: Any) -> Path:
    config = ProfileConfig(**{**options, "out": str(out), **changed})
    return run_profile(config, console=Console(file=io.StringIO())).path


@pytest.fixture
def profiles(options: dict[str, Any], toy: Path, tmp_path: Path) -> tuple[Path, Path]:
    return run(options, tmp_path / "one"), run(options, tmp_path / "other", model=str(toy / "other"))


def dataset(options: dict[str, Any]) -> Any:
    return datasets.Dataset.from_list([json.loads(line) for line in Path(options["data"]).read_text().splitlines()])


def test_weak_is_the_model_of_the_lower_mean() -> None:
    big = {
        "a": {"pass_rate": 0.9, "mean_score": 0.1},
        "b": {"pass_rate": 0.2, "mean_score": 0.1},
        "c": {"pass_rate": 0},
    }
    small = {"a": {"pass_rate": 0.1, "mean_score": 0.2}, "b": {"pass_rate": 0.3, "mean_score": 0.2}}
    names = ("big", "small")
    expected = {"a": (0.1, 0.9), "b": (0.3, 0.2)}
    assert join_rates(big, small, names=names) == join_rates(small, big, names=names) == expected
    assert join_rates(big, small, by="mean_score", names=names) == {"a": (0.1, 0.2), "b": (0.1, 0.2)}
    with pytest.raises(ConfigError, match="no prompt in common"):
        join_rates(big, {}, names=names)
    with pytest.raises(ConfigError, match="'./big' is joined with itself; give the folder of another model's profile"):
        join_rates(big, big, names=("big", "./big"))


def test_a_data_set_without_prompts_is_named(tmp_path: Path) -> None:
    """The prompts in a column of another name, and all splits at once, were a KeyError of `datasets`."""
    write_table(tmp_path, [{"id": "a", "pass_rate": 0.5, "mean_score": 0.5}])
    one = datasets.Dataset.from_list([{"problem": "1+1=", "answer": "2"}])
    for data, named in ((one, "problem, answer"), (datasets.DatasetDict({"train": one}), "train")):
        with pytest.raises(MissingColumnError, match=f"no column 'prompt', but {named}; rename the column"):
            add_pass_rates(data, tmp_path)


def test_references_of_another_column_are_refused(tmp_path: Path) -> None:
    """A misspelt `by` ended in a KeyError of the table."""
    write_table(tmp_path, [{"id": "a", "pass_rate": 0.5, "mean_score": 0.5}])
    with pytest.raises(ConfigError, match="by must be 'pass_rate' or 'mean_score', got 'score'"):
        reference_pass_rates(tmp_path, tmp_path, by="score")  # type: ignore[arg-type]


def test_a_profile_of_other_prompts_is_refused_before_anything_is_rolled_out(
    options: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    write_table(tmp_path / "other", [{"id": "a", "pass_rate": 0.5, "mean_score": 0.5}])
    with pytest.raises(ConfigError, match="have no prompt in common"):
        run(options, tmp_path / "new", join=str(tmp_path / "other"))
    assert not (tmp_path / "new").exists()


def test_two_profiles_are_joined(profiles: tuple[Path, Path], options: dict[str, Any]) -> None:
    pairs = reference_pass_rates(*profiles)
    assert len(pairs) == 24
    one, other = (np.array([row["pass_rate"] for row in read_table(p).values()]) for p in profiles)
    weak, strong = np.array(list(pairs.values())).mean(axis=0)
    assert sorted([one.mean(), other.mean()]) == pytest.approx([weak, strong])
    run(options, profiles[0], join=str(profiles[1]))  # nothing is rolled out again; the table has both
    table = read_table(profiles[0])
    assert {id_: tuple(row["reference_pass_rates"]) for id_, row in table.items()} == pairs
    numbers = json.loads((profiles[0] / "profile.json").read_text())
    bots = next(line for line in numbers["methods"] if line["method"] == "bots")
    assert bots["detail"] == "would also use reference_pass_rates (this profile's table has it)"
    with pytest.raises(ConfigError, match="are shares of solved rollouts, not mean_score; give .* with join="):
        add_pass_rates(dataset(options), profiles[0], by="mean_score")  # they were given as mean scores


def test_a_data_set_gets_the_columns(profiles: tuple[Path, Path], options: dict[str, Any]) -> None:
    data = dataset(options)
    more = add_pass_rates(data.add_column("difficulty", [5.0] * 24), profiles[0], join=profiles[1])
    assert set(more.column_names) == {*data.column_names, "pass_rate", "difficulty", "reference_pass_rates"}
    pool = rw.PromptPool(
        ids=list(map(str, range(24))), columns={n: more[n] for n in ("difficulty", "reference_pass_rates")}
    )
    assert pool.columns["reference_pass_rates"].shape == (24, 2)
    rates = list(read_table(profiles[0]).values())
    assert sorted(more["pass_rate"]) == sorted(row["pass_rate"] for row in rates)
    assert [1.0 - rate for rate in more["pass_rate"]] == list(more["difficulty"])
    again = add_pass_rates(data.select(range(23, -1, -1)), profiles[0])
    assert again["pass_rate"] == more["pass_rate"][::-1]  # joined by id, not by row


def test_prompts_without_a_rate(options: dict[str, Any], tmp_path: Path) -> None:
    some = run(options, tmp_path, num_prompts=9)
    with pytest.raises(PoolError, match="15 of 24 prompts have no pass rate"):
        add_pass_rates(dataset(options), some)
    assert len(add_pass_rates(dataset(options), some, missing="drop")) == 9
    with pytest.raises(PoolError, match="1 of 1 prompts .*; it is of other prompts: give both the same data, --id"):
        add_pass_rates(datasets.Dataset.from_list([{"prompt": "?"}]), some, missing="drop")
    with pytest.raises(ConfigError, match="missing must be"):
        add_pass_rates(dataset(options), some, missing="keep")  # type: ignore[arg-type]
    with pytest.raises(StateFileError, match="finished `rollwise profile`"):
        read_table(tmp_path / "nowhere")
    (tmp_path / "pass_rates.jsonl").write_text("{")
    with pytest.raises(StateFileError, match="damaged"):
        read_table(tmp_path)


def test_rows() -> None:
    group = {"id": "a", "rewards": [1.0, None, 0.0, 1.0, 0.0], "tokens": [1, 2, 3, 6, 3], "category": "x"}
    rows = table_rows([group, {**group, "id": "b"}], np.array([0.5, np.nan]), np.array([0.5, np.nan]), {})
    assert rows == [{
        "id": "a", "pass_rate": 0.5, "mean_score": 0.5, "difficulty": 0.5, "rollouts": 4, "mean_tokens": 3.0,
        "category": "x", "reference_pass_rates": None,
    }]  # fmt: skip


def test_a_table_is_written_whole(tmp_path: Path) -> None:
    rows = [{"id": "a", "pass_rate": 0.5, "reference_pass_rates": None}]
    assert write_table(tmp_path, rows)[0] == tmp_path / "pass_rates.jsonl"
    assert read_table(tmp_path) == {"a": rows[0]}


def longer_than_threshold(completions: list[str], threshold: list[int], **_: Any) -> list[float]:
    return [float(len(text) > least) for text, least in zip(completions, threshold, strict=True)]


@pytest.mark.parametrize(
    "curriculum",
    [
        rw.ADCL(probe_rollouts=2, difficulty="column"),
        rw.AdaRFT(),
        rw.Ordered(),
        rw.BOTS(implicit="interpolation"),
        rw.Recommended(),
    ],
    ids=lambda c: type(c).__name__,
)
def test_methods_train_on_it(
    curriculum: rw.Curriculum, profiles: tuple[Path, Path], options: dict[str, Any], tmp_path: Path
) -> None:
    """With a real trainer; ADCL then needs no probes for its first sorting."""
    data = add_pass_rates(dataset(options), profiles[0], join=profiles[1])
    trainer = make_trainer(
        tmp_path / "train",
        curriculum=curriculum,
        dataset=data,
        reward=longer_than_threshold,
        max_steps=2,
    )
    trainer.train()
    metrics = curriculum.metrics()
    assert metrics["told"] == 8
    easiest = sorted(data["difficulty"])[:4]
    if isinstance(curriculum, rw.Ordered):
        asked = np.flatnonzero(curriculum.columns["asked"])
        assert sorted(curriculum.pool.columns["difficulty"][asked])[:4] == easiest
    if isinstance(curriculum, rw.ADCL):
        assert metrics["probed"] < 24
    if isinstance(curriculum, rw.BOTS):
        assert "capability" in metrics
