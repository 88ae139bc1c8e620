from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rollwise as rw
from rollwise.prompt_ids import content_id


def test_ids_are_given_or_made_from_the_content() -> None:
    pool = rw.PromptPool.from_records([{"id": "a", "prompt": "x", "difficulty": 1}, {"prompt": "y", "difficulty": 2.5}])
    assert pool.ids == ["a", content_id("y")]
    assert list(pool.prompts) == ["x", "y"]
    assert pool.columns["difficulty"].tolist() == [1.0, 2.5]
    assert pool.slot(content_id("y")) == 1
    assert pool.slots_of(["nobody", "a"]).tolist() == [-1, 0]


def test_the_id_of_messages_does_not_depend_on_the_order_of_keys() -> None:
    assert content_id([{"role": "user", "content": "2+2"}]) == content_id([{"content": "2+2", "role": "user"}])


def test_columns_are_typed() -> None:
    records = [
        {"prompt": str(i), "level": i, "name": f"n{i}", "tags": ("a", "b"), "vector": [i, 2.0]} for i in range(3)
    ]
    columns = rw.PromptPool.from_records(records).columns
    assert columns["level"].dtype == np.int64
    assert columns["name"].dtype == object
    assert columns["vector"].shape == (3, 2)
    assert columns["tags"][0] == ("a", "b")
    with pytest.raises(ValueError, match="read-only"):
        columns["level"][0] = 7


@pytest.mark.parametrize(
    ("records", "reason"),
    [
        ([], "empty"),
        ([{"id": "a", "prompt": "x"}, {"id": "a", "prompt": "y"}], "duplicate id 'a' at row 1"),
        ([{"prompt": "x"}, {"prompt": "x"}], "record 1 repeats"),
        ([{"id": "", "prompt": "x"}], "non-empty"),
        ([{"id": 1.5, "prompt": "x"}], "non-empty strings"),
        (
            [{"answer": 4}],
            r"neither an id \('id'\) nor a prompt \('prompt'\); it has answer: name its field by prompt_f",
        ),
        (["a"], r"record 0 must be a mapping such as \{'prompt': ...\}, got 'a'"),
        ({"prompt": "a"}, "records must be a list of mappings, got one dict"),
        ([{"id": ["a"], "prompt": "x"}], r"non-empty strings, got \['a'\] at row 0"),
        (5, "records must be a list of mappings, got one int"),
        ([{"prompt": "x", "difficulty": float("nan")}], "difficulty' must hold one finite number .*, got nan at row 0"),
        ([{"prompt": "x", "difficulty": 1}, {"prompt": "y", "difficulty": "hard"}], "got 'hard' at row 1; mend it"),
        ([{"prompt": "x", "reference_pass_rates": [0.1, 1.2]}], r"two rates in \[0, 1\].*, got \[0.1, 1.2\] at row 0"),
        ([{"prompt": "x", "embedding": 3.0}], "embedding' must hold finite numbers.*, got .*3.0.* at row 0"),
        ([{"prompt": "x", "embedding": [1, 2]}, {"prompt": "y", "embedding": [1]}], r"got \[1\] at row 1"),
        ([{"prompt": "x", "embedding": [1]}, {"prompt": "y", "embedding": None}], "got None at row 1"),
        ([{"prompt": "x", "embedding": []}], r"got \[\] at row 0"),
        ([{"prompt": "x", "category": None}], "category"),
    ],
)
def test_bad_records(records: list[dict], reason: str) -> None:
    with pytest.raises(rw.PoolError, match=reason):
        rw.PromptPool.from_records(records)


def test_of_a_data_frame_records_are_wanted() -> None:
    """Iterated over, it gives the names of its columns."""
    frame = pytest.importorskip("pandas").DataFrame({"prompt": ["x", "y"], "level": [1, 2]})
    with pytest.raises(rw.PoolError, match=r"got 'prompt'; give df.to_dict\('records'\) of a DataFrame"):
        rw.PromptPool.from_records(frame)
    assert len(rw.PromptPool.from_records(frame.to_dict("records"))) == 2


def test_a_column_that_some_records_lack_is_left_out_and_named(caplog: pytest.LogCaptureFixture) -> None:
    pool = rw.PromptPool.from_records([{"id": "a", "category": "x"}, {"id": "b"}, {"id": "c", "category": "x"}])
    assert "category" not in pool.columns
    assert "column 'category' is left out: 1 of 3 records are without it, the first 'b'" in caplog.text


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"ids": "ab"}, "ids must be a list of strings, got 'ab'"),
        ({"ids": None}, "ids must be a list of strings, got None"),
        ({"ids": ["a", "b"], "prompts": {"a": "x", "b": "y"}}, "prompts must be a list, one prompt for each id"),
        ({"ids": ["a", "b"], "prompts": "xy"}, "prompts must be a list"),
        ({"ids": ["a", "b"], "prompts": iter("xy")}, "prompts must be a list"),
        (
            {"ids": ["a", "b"], "columns": {"category": "xy"}},
            "column 'category' must be a list of 2 values.*'xy'",
        ),
        (
            {"ids": ["a", "b"], "columns": {"difficulty": np.ma.array([1.0, 2.0], mask=[False, True])}},
            "column 'difficulty' has masked entries",
        ),
        ({"ids": ["a", "b"], "columns": {"difficulty": 5}}, "column 'difficulty' must be a list of 2 values, .*got 5"),
    ],
)
def test_what_is_no_list_is_named(given: dict, reason: str) -> None:
    """A mapping of prompts was taken, and ended the first ask in a KeyError; texts were read letter by letter."""
    with pytest.raises(rw.PoolError, match=reason):
        rw.PromptPool(**given)


def test_what_is_no_id_no_pool_or_no_column_is_named() -> None:
    """They ended in a TypeError, a KeyError or a ValueError; of whole numbers only ints were taken as ids."""
    pool = rw.PromptPool(ids=["a", "b"], columns={"category": ["x", "y"]})
    calls: dict[str, list[Callable[[], object]]] = {
        "no prompt with id": [lambda: pool.slot(["a"]), lambda: pool.minus([["a"]])],  # type: ignore[arg-type,list-item]
        "ids must be a list of strings": [lambda: pool.minus("a"), lambda: pool.minus(5)],  # type: ignore[arg-type]
        "joined with a PromptPool": [lambda: pool.plus({}), lambda: pool.plus(None)],  # type: ignore[arg-type]
        "takes the names of columns": [lambda: pool.codes(), lambda: pool.codes(["category"])],  # type: ignore[arg-type]
        "needs the column 'size'": [lambda: pool.codes("size"), lambda: pool.codes("category", "size")],
    }
    for reason, wrong in calls.items():
        for call in wrong:
            with pytest.raises(rw.PoolError, match=reason):
                call()
    with pytest.raises(rw.ConfigError, match="prompt_id must be a text"):
        rw.Uniform(pool).open_tickets(["a"])  # type: ignore[arg-type]
    assert rw.PromptPool.from_records([{"id": np.int64(7)}, {"id": 8}]).ids == ["7", "8"]


def test_lengths_must_agree() -> None:
    with pytest.raises(rw.PoolError, match="2 values for 1 prompts"):
        rw.PromptPool(ids=["a"], columns={"difficulty": [1, 2]})
    with pytest.raises(rw.PoolError, match="1 prompts for 2 ids"):
        rw.PromptPool(ids=["a", "b"], prompts=["x"])


@pytest.mark.parametrize(("how", "ids"), [("drop", 2), ("number", 3)])
def test_repeated_content_can_be_dropped_or_numbered(how: str, ids: int) -> None:
    pool = rw.PromptPool.from_records([{"prompt": "x"}, {"prompt": "y"}, {"prompt": "x"}], on_duplicate=how)
    assert len(pool) == ids
    if how == "number":
        assert pool.ids[2] == pool.ids[0] + "#2"


def test_a_missing_column_names_method_column_and_remedy() -> None:
    with pytest.raises(rw.MissingColumnError, match=r"Ordered needs the column 'difficulty'.*'level'.*column="):
        rw.Ordered(rw.PromptPool(ids=["a"], columns={"level": [1]}))
    assert len(rw.Ordered(rw.PromptPool(ids=["a"], columns={"level": [1]}), column="level").ask(1)) == 1


@given(st.lists(st.text(min_size=1), min_size=1, unique=True))
def test_any_text_can_be_an_id(ids: list[str]) -> None:
    pool = rw.PromptPool(ids=ids)
    assert [pool.slot(i) for i in ids] == list(range(len(ids)))
    saved = rw.Uniform(pool).state_dict()
    assert rw.Uniform(rw.PromptPool(ids=ids[::-1])).load_state_dict(saved).matched == len(ids)


def objects(values: list[Any]) -> np.ndarray:
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


@pytest.mark.parametrize(
    ("columns", "names", "of"),
    [
        ([objects(["b", "a", "b"])], ["a", "b"], [1, 0, 1]),
        ([np.array([3, 10, 3])], ["10", "3"], [1, 0, 1]),
        ([np.array([0.5, 0.25])], ["0.25", "0.5"], [1, 0]),
        ([objects([("x", "y"), "x", ["x", "y"]])], ["x", "x | y"], [1, 0, 1]),
        ([objects([1, True, "1", 1.0])], ["1", "1.0", "True"], [0, 2, 0, 1]),
        ([objects(["t", "u", "t"]), np.array([2, 1, 1])], ["t | 1", "t | 2", "u | 1"], [1, 2, 0]),
        ([objects(["a | b", ("a", "b")])], ["a | b"], [0, 0]),
    ],
)
def test_codes_are_the_distinct_values_by_name(columns: list[np.ndarray], names: list[str], of: list[int]) -> None:
    pool = rw.PromptPool(ids=[str(i) for i in range(len(of))], columns={f"c{i}": c for i, c in enumerate(columns)})
    found, codes = pool.codes(*pool.columns)
    assert (found, codes.tolist()) == (names, of)
