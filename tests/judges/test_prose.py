"""The prose of a problem, as METIS's judge is shown it (appendix A.2)."""

import pytest

from rollwise.judges import prose_of

PROSE = "You are given an array.\n\nFind the longest run; input is never empty."


@pytest.mark.parametrize(
    "sections",
    [
        "Input\nThe first line has n.\n\nOutput\nOne number.\n\nExamples\nInput\n3\nOutput\n2\n\nNote\nThe run is 1 2.",
        "## Input Format\nn\n## Output Format\nm\n## Constraints\n1 <= n <= 10\n## Sample Input 1\n3",
        "**Constraints:**\nn < 10\n\n**Example 1:**\n\nInput: nums = [1]\nOutput: 1",
        "-----Input-----\nn\n-----Output-----\nm\n-----Examples-----\n3\n-----Note-----\nso",
        "Constraints: n is small\nInput: one line\nOutput: one line",
    ],
)
def test_formal_sections_are_left_out(sections: str) -> None:
    assert prose_of(f"{PROSE}\n\n{sections}") == PROSE


def test_a_heading_of_another_kind_ends_a_section() -> None:
    assert prose_of("A\n# Input\nn\n# Story\nB\n# Notes\nn\n**Task**\nC") == "A\n# Story\nB\n**Task**\nC"


@pytest.mark.parametrize("line", ["Notes are short.", "Input is a list", "Note-taking helps", "Inputs vary"])
def test_sentences_are_no_headings(line: str) -> None:
    assert prose_of(line) == line


@pytest.mark.parametrize("mark", ["-", "*", "_", "#", "- "])
def test_a_rule_of_many_marks_takes_no_time(mark: str) -> None:
    """30 dashes, as statements have them, took hours."""
    assert prose_of(f"A\n{mark * 1000}.\nB") == f"A\n{mark * 1000}.\nB"
