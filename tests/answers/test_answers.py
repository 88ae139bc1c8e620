"""Answers in text: what is one, and which are the same."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from time_limit import at_most

from rollwise.answers import (
    final_answer,
    math_equal,
    normalised,
    recorded_answers,
    same_answer,
    stands_within,
)
from rollwise.answers.prose import _SAID
from rollwise.answers.reading import _tagged

WHOLE = (
    r"18/5|1,234.5|3.5|-2|1e-3|50%|50% of the total|x = 5|\frac{1}{2}|(1, 2)|18 and 20|18, 20|18 or 20|3 + 4i|"
    r"3x + 2|2\sqrt{3}|2^{10}|2 pi|2 x|3 AB|1 1/2|1 / 2|1/2/3|2.5.1|1,0000|10-12|3:30 pm|3 pm|5!|5 !|$5!$|21st|"
    "18cm|18 million|2 and a half|3 halves|3 dozen|6 feet 2 inches|6 feet two inches|2 as well as 3|"
    "4 times as many|5 or more|5 degrees below zero|101 base two|3 (mod 7)|5 if x is even|18 is the total|"
    "$5$, $6$|[0, 5)|.5|-$18|No. 5|Mr. Smith|U.S. Congress|B. Paris|between 0 and 1. Both|"
    "Steps: 1. Do this 2. Do that"
)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (r"thus \boxed{\frac{1}{2}} and \boxed{4}.", "4"),
        ("<answer> 3*5 </answer> or 12", "3*5"),
        ("12 eggs\n#### 1,400", "1,400"),
        ("#### 7\n\nQuestion: 2 and 2?", "7"),
        ("#### Step 1: Add\n2 + 2 = 4\n#### Step 2: Check\nThe answer is 4.", "4"),
        ("#### 1. Add\n2 + 2 = 4\n##### Result\nSo 4 it is", "4"),
        ("#### Final Answer\n4", "4"),
        ("so\n#### Answer: 4\n", "4"),
        ("<answer>The answer is 4</answer>", "4"),
        ("**Final Answer**: 4", "4"),
        ("**Answer**: Paris", "Paris"),
        ("**Answer:** Paris", "Paris"),
        ("The answer is isosceles.", "isosceles"),  # not "osceles"
        ("The answer is Israel", "Israel"),
        ("The answer is:\n\\[\n4\n\\]", "4"),
        ("So the answer is\n$$\n4\n$$", "4"),
        ("The final answer is:\n\n\\[ x \\]", r"\[ x \]"),
        ("The final answer is: 4 eggs", "4"),
        ("Final Answer: The final answer is $4$. I hope it is correct.", "4"),
        (r"so \\boxed{4}, from 3", "4"),
        ("The answer is **Paris**.", "Paris"),
        ("That answer isn't 5, it is 6", "6"),
        ("The answer is5, not 6", "5, not 6"),
        ("I checked the final answer by substitution and got 5.", "5"),
        ("Let me give the final answer.\n\n5", "5"),
        ("The final answers are 3 and 4.", "3 and 4"),
        ("so 4. The answer is .", "4"),
        (r"<think>is it \boxed{3}?</think><answer>4</answer>", "4"),
        (r"<think>\boxed{3}</think>", "3"),
        ("first 3, then -4.5", "-4.5"),
        ("so it is \N{MINUS SIGN}4", "-4"),
        ("7-3", "3"),
        ("between 2010-2015", "2015"),
        ("the chance is .5", ".5"),
        ("and so on...5", "5"),
        ("about 3.0e8", "3.0e8"),
        ("It cost $1,005 in all", "1005"),
        ("hm\nParis", "Paris"),
        ("a long closing line without any figure in it at all, which is no answer", None),
        ("", None),
        (r"cut off \boxed{1", "1"),
    ],
)
def test_final_answer(text: str, answer: str | None) -> None:
    assert final_answer(text) == answer


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ("18 dollars.", "18"),
        ("18 dollars per day. She sells 9 eggs.", "18"),
        ("$18$ since 3*6=18.", "18"),
        ("18, as computed above.", "18"),
        ("18 km/h, which is 5 m/s", "18"),
        ("**18 dollars**.", "18"),
        (r"\(18\) dollars a day!", "18"),
        (r"\$1,234.5 in total", "1,234.5"),
        ("18/5 miles", "18/5"),
        ("-2 degrees", "-2"),
        ("1e-3 meters because of 2", "1e-3"),
        ("50% off", "50%"),
        ("18. This is because 3*6=18.", "18"),
        ("x = 5. Since 3 + 2", "x = 5"),
        ("Paris. It is the capital.", "Paris"),
        ("J. K. Rowling. She wrote it.", "J. K. Rowling"),
    ],
)
def test_an_answer_that_is_said_ends_before_its_unit_or_reason(said: str, answer: str) -> None:
    assert final_answer(f"The answer is {said}") == answer


@pytest.mark.parametrize("said", WHOLE.split("|"))
def test_what_may_be_more_than_a_number_stays_whole(said: str) -> None:
    assert final_answer(f"The answer is {said}") == said


def test_the_first_mark_of_a_list_is_no_answer() -> None:
    assert final_answer("Answer:\n\n1. Janet has 16 eggs") == "1. Janet has 16 eggs"
    assert final_answer("Answer: 1. Paris 2. Rome") == "1. Paris 2. Rome"
    assert final_answer("Answer: 1 egg. Since") == "1"
    assert final_answer("The answer is 1. Since") == "1"


def test_strange_long_texts_take_no_time() -> None:
    for said in ("18" + " a" * 50_000, "1" + " " * 50_000 + "x", "a. A " * 20_000, "$" * 50_000, "1" + ",111" * 20_000):
        assert final_answer(f"The answer is {said}") is not None


LONG = 250_000
BUSY = 10.0
"""Seconds of CPU. Each of these texts takes at most 0.1; by the square it would take half a minute and more."""


@pytest.mark.parametrize(
    "text",
    [
        "<answer>",
        "</answer>",
        "<answer></answer>",
        "<answer>7</answer> ",
        "<",
        r"\boxed{",
        r"\boxed{}",
        "{",
        "#### ",
        "####\n",
        "#",
        "1",
        "1,",
        ",111",
        "1/",
        "1.",
        ",",
        "-",
        " ",
        "\n",
        " \n",
        "*",
        "$",
        "answer is ",
        "answer is\n",
        "answer: ",
        "final answer ",
        "a. A ",
        "1. A ",
        " a/b",
    ],
)
@pytest.mark.parametrize("before", ["", "The answer is", "The answer is 1"])
def test_a_long_text_takes_time_by_its_length_alone(before: str, text: str) -> None:
    """A policy in a loop writes such texts; votes and profiles read every one."""
    whole = before + text * (LONG // len(text))
    with at_most(BUSY):
        final_answer(whole)


@pytest.mark.parametrize("text", ["1 ", " ".join(map(str, range(LONG // 7)))])
def test_a_number_is_looked_for_in_a_long_text(text: str) -> None:
    whole = text * (LONG // len(text))
    with at_most(BUSY):
        assert not stands_within("-14", whole)


@pytest.mark.parametrize("text", ["1", "\N{SUPERSCRIPT TWO}", ".", " ", "$"])
def test_a_long_answer_is_compared_in_time_by_its_length_alone(text: str) -> None:
    """Such as that of a division without an end; each of a step's rollouts took minutes."""
    with at_most(BUSY):
        assert not math_equal("5", f"1{text * LONG}x")
        assert not math_equal("5", f"1{text * LONG}")


OLD_TAGGED = re.compile(r"<answer>(.*?)</answer>", re.DOTALL | re.IGNORECASE)
OLD_SAID = re.compile(
    r"(?:final answers?(?!\w|[.,;!?]|[^\S\n]+(?!(?:is|are)\b)(?-i:[a-z]))|answer is(?![^\W\d_])|answer(?=\**:))"
    r"\**\s*(?:is|are|:)?\s*\**\s*(?P<said>[^\n]+)",
    re.IGNORECASE,
)
PARTS = (
    *("<answer>", "</answer>", "<ANSWER>", "<an\u017fwer>", "<", "answer>", "answer is", "Answer:", "final answer"),
    *("is", ":", "*", "**", " ", "\n", "\t", "\r", "\u2028", "7", "x", "Paris", "."),
)
texts = st.lists(st.sampled_from(PARTS), max_size=14).map("".join) | st.text(max_size=40)


@settings(max_examples=10 * settings().max_examples, deadline=None)
@given(texts)
def test_what_is_linear_reads_as_the_expressions_did_that_were_not(text: str) -> None:
    assert _tagged(text) == next(reversed(OLD_TAGGED.findall(text)), None)
    assert [(found.span(), found.span("said")) for found in _SAID.finditer(text)] == [
        (found.span(), found.span("said")) for found in OLD_SAID.finditer(text)
    ]


def test_numbers_are_compared_exactly() -> None:
    assert not same_answer("9007199254740993", "9007199254740992")
    assert not same_answer("1" * 400, "2" * 400)
    assert not same_answer("1" * 5000, "2" * 5000)  # more digits than Python takes for a whole number
    assert same_answer("1" * 5000, "1" * 5000 + ".0")
    assert same_answer("1" * 20_000, "1" * 20_000)
    assert same_answer("2/6", "1/3")
    assert not same_answer("0.1", "0.10000000000000000001")
    assert not same_answer("1/0", "2/0")
    assert not same_answer("1e999999999", "1e999999998")
    assert not stands_within("9007199254740993", "so 9007199254740992")


def test_numbers_side_by_side_are_not_one() -> None:
    """They passed as the same, and votes counted them together."""
    for one, other in (("1,2,3", "123"), ("4 2", "42"), ("(1, -2)", "(1-2)"), ("0,5", "05")):
        assert not same_answer(one, other)
    for one, other in (("0, 100", "100"), ("3.5, 100", "3.51"), ("12345, 678", "12345678")):  # no thousands
        assert not same_answer(one, other)
    for one, other in (
        ("(1, 2)", "(1,2)"),
        ("1 2", "1, 2"),
        ("1 234 567", "1,234,567"),
        ("3 - 1", "3-1"),
        ("\N{MINUS SIGN}3", "-3"),
    ):
        assert same_answer(one, other)
    assert same_answer("1e3", "1000")


def test_same_answer() -> None:
    assert same_answer("1,005", "1005.0")
    assert same_answer("New York.", "newyork")
    assert same_answer("1/2", "0.5")
    assert same_answer("alice", r"$\text{Alice}$")
    assert same_answer("Qu\u00e9bec", "Que\u0301bec")  # an accent as a sign of its own
    assert not same_answer("bob", r"\text{Alice}")
    assert not same_answer("4", "14")
    assert not same_answer("a", "b")
    assert normalised("$ 1, 005.") == "1005"


def test_a_star_between_numbers_is_a_sign() -> None:
    """2*3 passed as 23."""
    for times in ("2*3", "2 * 3", "2**3"):
        assert not same_answer("23", times)
    assert same_answer("2 * 3", "2*3")
    for bold in ("**23**", "*23*", "* 23"):
        assert same_answer("23", bold)
    assert same_answer("The Paris", "The **Paris**")


def test_a_number_stands_in_a_text_as_a_number() -> None:
    assert stands_within("1400", "that is 1,400 grams")
    assert not stands_within("140", "that is 1,400 grams")
    assert stands_within("New York", "i think new york, yes")
    assert not stands_within("1/0", "1/0 is no number")


def test_recorded_answers() -> None:
    assert recorded_answers({"answer": "so 3+4 = 7\n#### 7"}) == ["7"]
    assert recorded_answers({"solution": r"we get \boxed{x^2}", "prompt": "?"}) == ["x^2"]
    assert recorded_answers({"reward_model": {"style": "rule", "ground_truth": "12"}}) == ["12"]
    assert recorded_answers({"answer": ["12"]}) == ["12"]
    assert recorded_answers({"answer": ["12", None, "so 3+4 = 7\n#### 7"]}) == ["12", "7"]
    assert recorded_answers({"answer": []}) == []
    assert recorded_answers({"answer": [[1, 2]]}) == ["[1, 2]"]
    assert recorded_answers({"target": 5}) == []
    assert recorded_answers({"answer": float("nan")}) == []
    assert recorded_answers({"answer": 4.0}) == ["4"]  # whole numbers beside an empty cell are such
    assert recorded_answers({"answer": [0.5]}) == ["0.5"]
    assert recorded_answers({"target": 5}, "target") == ["5"]
