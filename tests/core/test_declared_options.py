"""Every option of every gate, task, judge, belief and stopping rule: declared once, described, and checked alike."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import is_dataclass
from typing import Any, Literal

import numpy as np
import pytest

import rollwise as rw
from rollwise.estimators import BELIEFS, IMPLICIT, PooledBelief
from rollwise.gates import GATES, DynamicSampling, Gate, make_dynamic_sampling
from rollwise.inference.judge import SuccessHeadJudge
from rollwise.inference.policies import POLICIES, make_policy
from rollwise.inference.policies.agreement import RULES, make_rule
from rollwise.judges import EmbeddingJudge, InContextJudge, Judge, TextJudge, make_judge
from rollwise.models.reading.prompt_judge import PromptJudge
from rollwise.models.value_model import ValueModelJudge
from rollwise.options import Count, Option, Share, constructor_names, make, options_of
from rollwise.tasks import TASKS, make_task

JUDGES = (EmbeddingJudge, InContextJudge, PromptJudge, TextJudge, ValueModelJudge, SuccessHeadJudge)
KINDS: dict[str, Any] = {
    kind.__name__: kind
    for kind in (
        *GATES.values(),
        DynamicSampling,
        *TASKS.values(),
        *JUDGES,
        *BELIEFS.values(),
        *IMPLICIT.values(),
        PooledBelief,
        *POLICIES.values(),
        *RULES.values(),
    )
}
CASES = [(name, option) for name, kind in KINDS.items() for option in options_of(kind)]
WRONG = (-1.5, "nonsense", 5, object(), [])
UNCHECKED = {"format", "references"}  # names or objects: `make_format` and `check_references` check them


@pytest.mark.parametrize(("kind", "name"), CASES)
def test_a_value_out_of_range_is_refused_in_the_words_of_the_listing(kind: str, name: str) -> None:
    option = options_of(KINDS[kind])[name]
    assert option.help, "a line in the docstring's Args"
    if name in UNCHECKED:
        return
    for value in WRONG:
        try:
            option.check(value)
        except rw.ConfigError:
            break
    else:
        raise AssertionError(f"{kind} takes anything as {name}")
    with pytest.raises(rw.ConfigError) as caught:
        KINDS[kind](**{name: value})
    assert str(caught.value) == f"{name} must be {option.describe()}, got {value!r}"


@pytest.mark.parametrize("kind", [name for name, kind in KINDS.items() if options_of(kind) and not is_dataclass(kind)])
def test_a_wrong_name_is_refused_with_the_nearest(kind: str) -> None:
    names = list(options_of(KINDS[kind]))
    with pytest.raises(rw.ConfigError) as caught:
        KINDS[kind](**{f"{names[0]}s": 1})
    known = ", ".join(constructor_names(KINDS[kind]))
    assert str(caught.value) == f"{kind} has no option '{names[0]}s' (did you mean {names[0]!r}?); it has {known}"


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: make_dynamic_sampling("mixed", tolerence=0.1), "gate 'mixed' has no option 'tolerence' (did you mean"),
        (lambda: make_task("reversal", longst=4), "task 'reversal' has no option 'longst' (did you mean 'longest'?)"),
        (lambda: make_judge("frozen", ridges=2), "judge 'frozen' has no option 'ridges' (did you mean 'ridge'?)"),
        (
            lambda: rw.Selector(estimator_options={"priors": 1}, estimator="beta"),
            "belief 'beta' has no option 'priors'",
        ),
        (lambda: make_rule("esc", windows=2), "rule 'esc' has no option 'windows' (did you mean 'window'?)"),
        (lambda: make_policy("prune", keeps=2), "policy 'prune' has no option 'keeps' (did you mean 'keep'?)"),
    ],
)
def test_by_name_the_message_has_that_name(make: Any, text: str) -> None:
    with pytest.raises(rw.ConfigError) as caught:
        make()
    assert str(caught.value).startswith(text)


class Own(Gate):
    """A gate of one's own.

    Args:
        times: how often.
        parts: of what.
    """

    def __init__(self, *, times: Count = 2, parts: tuple[Share, ...] = (0.5,)) -> None:
        self.times, self.parts = times, parts

    def passes(self, evidence: rw.Evidence) -> np.ndarray:
        return evidence.count >= self.times


def test_saved_options_are_those_declared_and_older_states_load() -> None:
    gate = Own(times=np.int64(3), parts=[0.25, 1])  # type: ignore[arg-type]
    assert gate.parts == (0.25, 1.0)
    state = json.loads(json.dumps(gate.state_dict()))
    assert state["options"] == {"times": 3, "parts": [0.25, 1.0]}
    Own(times=3, parts=(0.25, 1.0)).load_state_dict(state)
    with pytest.raises(rw.StateError, match="of the gate Own"):
        Own().load_state_dict(state)
    Own().load_state_dict({**state, "options": {}})  # of before options were saved without further code


def test_a_list_is_checked_item_by_item() -> None:
    for wrong in ((), (2,), "half", 0.5, [[0.5]]):
        with pytest.raises(rw.ConfigError, match=r"parts must be one or more numbers in \[0, 1\], got"):
            Own(parts=wrong)  # type: ignore[arg-type]


def test_the_choices_of_a_list_are_named_as_they_are_given() -> None:
    """'long_context' of BFCL's categories was 'long_contexts'."""
    option = Option("kinds", Sequence[Literal["base", "long_context", "number"]], (), "")
    assert option.describe() == "one or more of 'base', 'long_context', 'number'"


def test_a_subclass_that_fixes_an_option_does_not_take_it() -> None:
    class Fixed(Own):
        def __init__(self) -> None:
            super().__init__(times=7)

    class Open(Own):
        def __init__(self, **more: Any) -> None:
            super().__init__(**more)

    class Anything(Judge):
        def __init__(self, **anything: Any) -> None:
            self.anything = anything

    assert Fixed().options() == {"times": 7, "parts": [0.5]}
    with pytest.raises(rw.ConfigError, match="Fixed has no option 'times'"):
        Fixed(times=3)  # type: ignore[call-arg]
    assert Open(times=3).times == 3
    with pytest.raises(rw.ConfigError, match=r"Open has no option 'tims' \(did you mean 'times'\?\)"):
        Open(tims=3)
    assert Anything(word=1).anything == {"word": 1}


def test_what_must_be_given_is_named() -> None:
    def judge(*, model: str, predicts: str = "pass-rate") -> None: ...

    with pytest.raises(rw.ConfigError, match="judge 'mine': 'model' must be given"):
        make("judge 'mine'", judge, {"predicts": "variance"})


@pytest.mark.parametrize("value", [10**400, np.timedelta64(1), np.complex128(1), float("nan")])
def test_numbers_that_no_float_can_hold_are_refused_in_one_line(value: Any) -> None:
    for make_one in (lambda: rw.BOTS(target=value), lambda: rw.PAC(drift=value), lambda: rw.ADCL(chunks=value)):
        with pytest.raises(rw.ConfigError, match="must be a (whole )?number") as caught:
            make_one()
        assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    ("make_one", "words"),
    [
        (lambda: rw.DynamicSampling(margin=1e9), r"margin must be a number >= 1, and at most 1e\+06, got 1000000000.0"),
        (
            lambda: rw.DynamicSampling(max_rounds=2**60),
            r"max_rounds must be a whole number >= 1, and at most 2\^53, got",
        ),
        (
            lambda: rw.BOTS(temperature=1e308),
            r"temperature must be a number > 0 or a schedule, and at most 1e\+12, got",
        ),
        (lambda: rw.BOTS(belief="gaussian", prior=(0.5, 1e-300)), r"sigma_0 > 1e-100 reward_sd=0.25\), got"),
    ],
)
def test_a_bound_that_is_far_away_is_named_to_who_passes_it(make_one: Any, words: str) -> None:
    """They said no more than "must be a number >= 1, got 1000000000.0", or ended in an OverflowError."""
    with pytest.raises(rw.ConfigError, match=words):
        make_one()


def test_a_long_value_is_shown_in_one_short_line() -> None:
    with pytest.raises(rw.ConfigError, match="size must be") as caught:
        rw.PromptStream(dict, seed=0, size=np.zeros((100, 100)))  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)
