"""The taxonomy of appendix B.4 on completions sorted by hand, and against the verifier."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollwise.errors import TaskError
from rollwise.tasks import Countdown, Task
from rollwise.tasks.countdown.failures import CATEGORIES, LOOP, LOOPS, classify, incoherent
from rollwise.tasks.countdown.prompts import STYLES, render_completion, with_tags

NUMS, TARGET = [7, 3, 5], 22
LINE = "Check once more: 3 + 5 + 7 = 15, and 15 is not the 22 we want.\n"


# Numbers 3, 5, 7 to 22; the sentence of appendix B.4 that decides beside each.
@pytest.mark.parametrize(
    ("completion", "category"),
    [
        ("<answer>3*5+7</answer>", "solved"),
        ("<answer>1</answer> better: <answer>3*5+7</answer>", "solved"),  # what the verifier pays is no failure
        ("<answer>3+5+7</answer>", "wrong-target"),
        ("I try 3+5+7. </think>\n<answer> 3+5+7 </answer>", "wrong-target"),
        ("<answer>3+5+7</answer><|im_end|>\n", "wrong-target"),  # the end of the turn is no further reasoning
        ("<answer>(3-7)/5</answer>", "wrong-target"),
        ("<answer>3*5+7+3-3</answer>", "invalid-number-use"),  # "reusing a number"
        ("<answer>15+7</answer>", "invalid-number-use"),  # "a modified number"; right value
        ("<answer>3*7+1</answer>", "invalid-number-use"),  # "an extra constant"
        ("<answer>5*3</answer>", "invalid-number-use"),  # "omitting a required number"
        ("<answer>3/(5-5)+7</answer>", "arithmetic"),  # "division by zero", with wrong numbers too
        ("<answer>3/0</answer>", "arithmetic"),
        ("", "format"),  # "missing <answer> tags"
        ("3*5+7", "format"),
        ("<answer>3*5+7", "format"),  # "malformed answer tags"
        ("3*5+7</answer>", "format"),
        ("</answer>3*5+7<answer>", "format"),
        ("<Answer>3*5+7</Answer>", "format"),
        ("<answer>  </answer>", "format"),  # "empty answer fields"
        ("<answer>no idea</answer>", "format"),  # "non-arithmetic text inside the answer field"
        ("<answer>3*5+7=22</answer>", "format"),
        ("<answer>print(3*5+7)</answer>", "format"),  # "code-like output": judged in the field
        ("<answer>三*5+7</answer>", "format"),
        ("<answer>3/0)</answer>", "format"),  # "can't be parsed" comes before what it would divide by
        ("<answer>3+5+7</answer> or <answer>3+5-7</answer>", "repetitive"),  # "multiple inconsistent final answers"
        ("<answer>3+5+7</answer></answer>", "repetitive"),  # "repeated answer tags"
        ("<answer>3+5+7</answer> or <answer>3+5", "repetitive"),
        ("<answer>3+5+7</answer> Wait, that is 15.", "repetitive"),  # "continued reasoning after a final answer"
        (LINE * 3 + "<answer>3+5+7</answer>", "repetitive"),  # "repeated verification loops"
        (LINE * 40, "repetitive"),  # no answer at all, but the loop is why
        ("```python\nfor a in x: pass\n``` <answer>3+5+7</answer>", "repetitive"),  # "irrelevant code or markup"
        ("<loom> 3 and 5 <answer>3+5+7</answer>", "repetitive"),
        ("so 3加5 <answer>3+5+7</answer>", "repetitive"),  # "corrupted multilingual fragments"
        ("so \ufffd\ufffd <answer>3+5+7</answer>", "repetitive"),
        ("3 \u00d7 5 → 15, naïve \u03b1 ✓ <answer>3+5+7</answer>", "wrong-target"),  # signs are not corruption
        ("<answer>" + "(" * 40 + "3" + ")" * 40 + "</answer>", "other"),  # "unusual parser edge cases"
        ("<answer>" + "3+" * 200 + "3</answer>", "other"),
    ],
)
def test_sorted_by_hand(completion: str, category: str) -> None:
    assert classify(completion, NUMS, TARGET) == category
    assert classify([{"role": "assistant", "content": completion}], NUMS, TARGET) == category
    expected = None if category == "solved" else category
    assert Countdown().failure(completion, {"nums": NUMS, "target": TARGET}) == expected


def test_a_search_that_repeats_its_phrases_is_no_loop() -> None:
    """Six tries differ by their numbers, so no 16 words recur though "which is not 22. Let's try" does."""
    tries = [
        f"Let's try {a} + {b} - 7 = {a + b - 7}, which is not 22. "
        for a, b in zip(range(6), range(9, 3, -1), strict=True)
    ]
    assert classify("".join(tries) + "<answer>3+5+7</answer>", NUMS, TARGET) == "wrong-target"


def test_a_loop_is_sixteen_words_three_times_without_overlap() -> None:
    """16 distinct words: twice is no loop, three times is. One word: 47 hold 16 in a row twice, 48 three times."""
    words = " ".join(f"w{i}" for i in range(LOOP)) + " "
    assert [incoherent(words * times) for times in (LOOPS - 1, LOOPS)] == [False, True]
    assert [incoherent("no " * times) for times in (47, 48)] == [False, True]


leaves = st.sampled_from(["3", "5", "7", "2", "0", "22"])
expressions = st.recursive(
    leaves,
    lambda sub: st.tuples(sub, st.sampled_from("+-*/"), sub).map(lambda p: f"({p[0]}{p[1]}{p[2]})"),
    max_leaves=4,
)
orders = st.permutations([3, 5, 7]).flatmap(
    lambda n: st.tuples(st.just(n), st.sampled_from("+-*/"), st.sampled_from("+-*/"))
)
over_all = orders.map(lambda p: f"{p[0][0]}{p[1]}{p[0][1]}{p[2]}{p[0][2]}")  # every number once: often right
noise = st.sampled_from(
    ["", " done", "<answer>", "</answer>", "<answer>1</answer>", "三", "\n", "<answer>3*5+7</answer>"]
)


@given(
    st.one_of(expressions, over_all), st.sampled_from([22, 1, 15, -4]), st.sampled_from(sorted(STYLES)), noise, noise
)
def test_solved_exactly_when_the_verifier_pays_in_full(
    expression: str, target: int, style: str, before: str, after: str
) -> None:
    completion: Any = render_completion(style, expression)
    if isinstance(completion, str):
        completion = before + completion + after
    else:
        completion = [{**completion[0], "content": before + completion[0]["content"] + after}]
    (reward,) = Countdown(style=style).reward([""], [completion], nums=[NUMS], target=[target])
    category = classify(with_tags(style, completion), NUMS, target)
    assert (category == "solved") == (reward == 1.0)
    if category in ("wrong-target", "invalid-number-use", "arithmetic", "other"):
        assert reward == 0.1  # an answer stands in tags


@given(st.text(max_size=300))
def test_any_text_has_a_category(text: str) -> None:
    assert classify(text, NUMS, TARGET) in CATEGORIES
    assert classify(f"<answer>{text}</answer>", NUMS, TARGET) in CATEGORIES


@pytest.mark.parametrize(
    "text", ["<answer>" * 20_000, "a b " * 50_000, "<a " * 50_000, "<|" * 50_000, "<answer>" + "(" * 100_000]
)
def test_hostile_text_is_quick(text: str) -> None:
    start = time.perf_counter()
    assert classify(text, NUMS, TARGET) in CATEGORIES
    assert time.perf_counter() - start < 2


def test_every_demonstration_is_solved_or_wrong_in_value() -> None:
    task = Countdown(levels=(2,), style="tinyzero")
    for record, demo in zip(task.train_records(30, 0), task.demonstrations(30, 0), strict=True):
        assert task.failure(demo["completion"], record) in (None, "invalid-number-use", "wrong-target")


def test_a_record_without_numbers_and_a_task_without_taxonomy() -> None:
    with pytest.raises(TaskError, match="nums and target"):
        Countdown().failure("", {"id": "x"})
    assert Task.failure(Countdown(), "", {}) is None
