"""YAML files: what is read, what is refused and how it is said."""

import sys
from pathlib import Path

import pytest

import rollwise as rw
from rollwise.yaml_file import parse_yaml, read_yaml, write_yaml


def test_what_is_written_is_read_in_its_order(tmp_path: Path) -> None:
    values = {"steps": 3, "about": "Ü", "budget": {"tokens": 180000, "rate": 1e-05}, "seeds": [2, 0]}
    write_yaml(tmp_path / "a.yaml", values)
    found = read_yaml(tmp_path / "a.yaml")
    assert found == values
    assert list(found) == list(values)
    assert [path.name for path in tmp_path.iterdir()] == ["a.yaml"]


def test_an_empty_file_holds_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("# nothing\n")
    assert read_yaml(tmp_path / "a.yaml") is None


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, r"a\.yaml' can't be read: No such file or directory; mend it or move it away"),
        (b"a: [", r"a\.yaml' is not valid YAML \(while parsing"),
        (b"when: 2025-99-99", r"a\.yaml' is not valid YAML \(month must be in 1\.\.12"),
        (b"a: {b: 1, b: 2}", r"a\.yaml' is not valid YAML \(the key 'b' stands twice in line 1, column 11"),
        (b"[" * 5000, r"a\.yaml' is not valid YAML \(maximum recursion depth"),
        (b"a: !!python/object:os.system {}", r"a\.yaml' is not valid YAML \(could not determine a constructor"),
        (b"name: \xff", r"a\.yaml' can't be read: it is not UTF-8 \('utf-8' codec can't decode byte 0xff"),
    ],
)
def test_what_cannot_be_read_is_said_in_one_line(tmp_path: Path, content: bytes | None, said: str) -> None:
    path = tmp_path / "a.yaml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(rw.StateFileError, match=said) as caught:
        read_yaml(path)
    assert "\n" not in str(caught.value)


def test_the_error_and_the_remedy_are_the_readers(tmp_path: Path) -> None:
    with pytest.raises(rw.ConfigError, match="No such file or directory; is this a run's folder"):
        read_yaml(tmp_path / "a.yaml", error=rw.ConfigError, remedy="is this a run's folder?")


def test_without_pyyaml_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(rw.MissingExtraError, match=r'pip install "rollwise\[train\]"'):
        parse_yaml("a: 1")
