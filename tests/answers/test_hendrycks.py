"""The normalisation of MATH's own scorer, by hand: what it forgives, and what it does not."""

import pytest

from rollwise.answers import hendrycks_equal


@pytest.mark.parametrize(
    ("gold", "answer", "equal"),
    [
        (r"\frac{1}{\sqrt{2}}", r"\frac1{\sqrt2}", True),  # {1} and what stands in braces: a root may be in it
        (r"\frac{1}{1+\sqrt{2}}", r"\frac1{1+\sqrt{2}}", True),
        (r"\frac{72}{1}", r"\frac{72}1", False),
        ("50", "50%", True),
        ("0.5", r"\frac12", True),
        ("{0.5}", "{.5}", True),
        ("-0.5", "-.5", False),  # a zero is put before a point at the beginning, after a space or a brace
        (r"\sqrt{3}", r"\sqrt 3", False),
        ("5", "$5$", False),
        ("5", r"\$5", True),
        ("5", "5.", False),
        ("3", "x = 3", True),
        ("3", "xy = 3", False),  # a name has two signs at most, the space included
        ("3", "xy=3", True),
        (r"\sqrt", r"\sqrt", True),  # it fails, and compares the texts
        (r"3\text{ cm} by 4\text{ cm}", r"3\text{ cm}  by 4\text{ cm}", False),
        (r"\frac1", r"\frac 1", True),
        (r"\fracx\frac", r"\frac x\frac", True),
        (r"\frac", r" \frac", False),
    ],
)
def test_answers_are_equal_as_in_maths_own_scorer(gold: str, answer: str, equal: bool) -> None:
    assert hendrycks_equal(gold, answer) is hendrycks_equal(answer, gold) is equal
