"""pyarrow where it is installed, and what is said where it isn't."""

import sys

import pytest

from rollwise.errors import MissingExtraError
from rollwise.parquet import import_pyarrow


def test_the_module_comes_with_its_parquet_part() -> None:
    pytest.importorskip("pyarrow.parquet")
    assert callable(import_pyarrow("a.parquet").parquet.read_table)


@pytest.mark.parametrize("absent", ["pyarrow", "pyarrow.parquet"])
def test_without_it_file_extra_and_way_out_are_named(absent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, absent, None)
    with pytest.raises(MissingExtraError) as caught:
        import_pyarrow("a.parquet")
    assert str(caught.value) == (
        "reading 'a.parquet' needs pyarrow; pip install \"rollwise[train]\", or give a .jsonl file"
    )
