"""`Schedule`: an option's value by step or tokens."""

import json
from typing import Any

import numpy as np
import pytest

import rollwise as rw
from rollwise.options import Schedule, Share
from rollwise.options.option import Option
from rollwise.yaml_file import parse_yaml

OPTION = Option("exploration", Share | Schedule, 0.125, "")


def test_linear_and_stepped_by_hand() -> None:
    """From 0.3 at 0 to 0.1 at 200: a quarter of the way at 50, 0.25; beyond the last point its value."""
    linear = OPTION.check([[0, 0.3], [200, 0.1]])
    assert [linear.at(step=step) for step in (0, 50, 200, 999)] == pytest.approx([0.3, 0.25, 0.1, 0.1])
    stepped = OPTION.check({"points": [[10, 0.3], [200, 0.1]], "shape": "stepped"})
    assert [stepped.at(step=step) for step in (0, 10, 199, 200)] == [0.3, 0.3, 0.3, 0.1]
    by_tokens = OPTION.check({"points": [[0, 0.0], [1_000_000, 1.0]], "by": "tokens"})
    assert by_tokens.at(step=7, tokens=250_000) == pytest.approx(0.25)


def test_it_is_written_as_it_was_given() -> None:
    given = [[0, 0.3], [200, 0.05]]
    assert OPTION.check(given).written() == given
    whole = {"points": given, "shape": "stepped", "by": "tokens"}
    assert OPTION.check(OPTION.check(whole).written()) == OPTION.check(whole)
    assert OPTION.check(parse_yaml("[[0, 0.3], [200, 0.05]]")) == OPTION.check(given)
    assert OPTION.check(0.5) == 0.5
    assert OPTION.describe() == "a number in [0, 1] or a schedule"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ([[0, 2.0]], "exploration in a schedule must be a number in"),
        ([], "pairs such as"),
        ([[0, 0.1, 0.2]], "pairs such as"),
        ([[10, 0.1], [10, 0.2]], "must rise, got 10 after 10"),
        ([[-1, 0.1]], "whole number >= 0, got -1"),
        ([[0.5, 0.1]], "whole number >= 0, got 0.5"),
        ({"points": [[0, 0.1]], "shape": "round"}, "shape of the schedule exploration must be 'linear' or 'stepped'"),
        ({"points": [[0, 0.1]], "by": "hours"}, "by of the schedule exploration must be 'steps' or 'tokens'"),
        ({"point": [[0, 0.1]]}, "must have points"),
        ("often", "a number in"),
    ],
)
def test_what_is_wrong_is_named(wrong: Any, message: str) -> None:
    with pytest.raises(rw.ConfigError, match=message):
        OPTION.check(wrong)


def test_an_option_that_takes_none_refuses_one() -> None:
    with pytest.raises(rw.ConfigError, match="ema_weight must be a number in"):
        rw.PrioritizedReplay(ema_weight=[[0, 0.3], [200, 0.05]])  # type: ignore[arg-type]


def pool() -> rw.PromptPool:
    rng = np.random.default_rng(0)
    return rw.PromptPool(
        ids=[f"p{i}" for i in range(60)],
        columns={
            "category": ["ab"[i % 2] for i in range(60)],
            "embedding": rng.standard_normal((60, 4)),
            "reference_pass_rates": np.sort(rng.random((60, 2)), axis=1),
        },
    )


SCHEDULED: list[tuple[str, dict[str, Any], str]] = [
    ("prioritized", {"exploration": [[0, 1.0], [10, 0.0]]}, "exploration"),
    ("sec", {"temperature": [[0, 1.0], [10, 0.2]]}, "temperature"),
    ("bots", {"forgetting": [[0, 0.5], [10, 0.1]]}, "forgetting"),
    ("bots", {"implicit_weight": {"points": [[0, 0.5], [3, 0.0]], "shape": "stepped"}}, "implicit_weight"),
    ("bots", {"draw": "softmax", "temperature": [[0, 1.0], [10, 0.01]]}, "temperature"),
    ("frontier", {"replay_ratio": [[0, 0.0], [10, 0.5]], "least_memory": 4}, "replay_ratio"),
    ("bots", {"forgetting": {"points": [[0, 0.5], [4000, 0.1]], "by": "tokens"}}, "forgetting"),
]


def steps(curriculum: rw.Curriculum, first: int, last: int) -> list[list[str]]:
    asked = []
    for step in range(first, last):
        curriculum.count_tokens(400 * step)
        tickets = curriculum.ask(3) + curriculum.ask(3, step=curriculum.step)
        asked.append([t.prompt_id for t in tickets])
        some = tickets[:4] if step % 3 == 1 else tickets  # steps without outcomes keep their ranking
        if step % 4 != 2:
            curriculum.tell(
                [
                    rw.Outcome(t.id, [1.0] * (int(t.prompt_id[1:]) % 5) + [0.0] * (4 - int(t.prompt_id[1:]) % 5))
                    for t in some
                ]
            )
    return asked


@pytest.mark.parametrize(("name", "options", "shown"), SCHEDULED)
def test_a_schedule_is_saved_and_resumed_to_the_bit(name: str, options: dict[str, Any], shown: str) -> None:
    for stop in (3, 7):  # step 7 follows one in which nothing was told
        straight = rw.make_curriculum(name, **options, seed=3)
        straight.bind(pool())
        steps(straight, 1, stop)
        saved = json.loads(json.dumps(straight.state_dict(), allow_nan=False))
        resumed = rw.make_curriculum(name, **options, seed=9)
        resumed.bind(pool())
        resumed.load_state_dict(saved, new_incarnation=False)
        assert steps(resumed, stop, 12) == steps(straight, stop, 12)
        assert resumed.state_dict() == straight.state_dict()
        assert resumed.metrics()[shown] == straight.metrics()[shown]
        other = rw.make_curriculum(name, seed=3, **{key: value for key, value in options.items() if key != shown})
        other.bind(pool())
        with pytest.raises(rw.StateError, match=shown):
            other.load_state_dict(saved)


def test_the_metrics_have_the_present_value() -> None:
    replay = rw.PrioritizedReplay(pool(), exploration=[[0, 0.4], [10, 0.0]])  # type: ignore[arg-type]
    replay.ask(2, step=5)
    assert replay.metrics()["exploration"] == pytest.approx(0.2)
    assert "exploration" not in rw.PrioritizedReplay(pool()).metrics()
    mixture = rw.Mixture(pool(), lanes={"replay": (1.0, rw.PrioritizedReplay(exploration=[[0, 0.4], [10, 0.0]]))})  # type: ignore[arg-type]
    mixture.ask(2, step=5)
    assert mixture.metrics()["replay/exploration"] == pytest.approx(0.2)


def test_bots_forgets_by_the_schedule() -> None:
    """lambda = 1 forgets all: after 4 of 4, alpha = 1 + 4; after 1 of 4 with lambda = 0 of step 2, 5 + 1 and 1 + 3."""
    one = rw.PromptPool(ids=["a"])
    bots = rw.BOTS(one, forgetting={"points": [[1, 1.0], [2, 0.0]], "shape": "stepped"})  # type: ignore[arg-type]
    for successes in (4, 1):
        (ticket,) = bots.ask(1)
        bots.tell([rw.Outcome(ticket.id, [1.0] * successes + [0.0] * (4 - successes))])
    assert [parameter.tolist() for parameter in bots.posterior()] == [[6.0], [4.0]]


def test_bots_refuses_a_schedule_of_what_adapts() -> None:
    with pytest.raises(rw.ConfigError, match="forgetting must be a number with adaptive=True"):
        rw.BOTS(forgetting=[[0, 0.3], [9, 0.1]], adaptive=True)  # type: ignore[arg-type]


def test_bots_adapts_to_a_validation_score() -> None:
    """Scores 0.2, 0.4, 0.5, 0.5: average gains 0.2, 0.15, 0.075, so f = 1, 0.75, 0.375 of (0.11 - 0.01) and of 0.2."""
    bots = rw.BOTS(pool(), forgetting=0.11, implicit_weight=0.2, adaptive="score")
    found = []
    for score in (0.2, 0.4, 0.5, 0.5):
        bots.note_score(score)
        found.append([bots.metrics()["forgetting"], bots.metrics()["implicit_weight"]])
    assert np.array(found) == pytest.approx(np.array([[0.11, 0.2], [0.11, 0.2], [0.085, 0.15], [0.0475, 0.075]]))
    resumed = rw.BOTS(pool(), forgetting=0.11, implicit_weight=0.2, adaptive="score")
    resumed.load_state_dict(json.loads(json.dumps(bots.state_dict())))
    for one in (bots, resumed):
        one.note_score(0.6)
    assert resumed.metrics() == bots.metrics()


def test_a_child_of_a_composite_settles_a_step_by_its_own_value() -> None:
    """As alone: lambda = 1 in step 1, 0 in step 2; both are settled when step 3 begins."""
    stepped: Any = {"points": [[1, 1.0], [2, 0.0]], "shape": "stepped"}
    mixture = rw.Mixture(rw.PromptPool(ids=["a"]), lanes={"bots": (1.0, rw.BOTS(forgetting=stepped))}, rails=None)
    for successes in (4, 1):
        (ticket,) = mixture.ask(1)
        mixture.tell([rw.Outcome(ticket.id, [1.0] * successes + [0.0] * (4 - successes))])
    mixture.ask(1)
    child = mixture.child("bots")
    assert isinstance(child, rw.BOTS)
    assert [parameter.tolist() for parameter in child.posterior()] == [[6.0], [4.0]]


def test_the_command_line_takes_a_schedule() -> None:
    from rollwise.cli.commands import parser_of

    words = ["--curriculum", "prioritized", "--curriculum_options.exploration", "[[0, 0.3], [200, 0.05]]"]
    options = parser_of("train").parse_args(words).curriculum_options
    replay = rw.make_curriculum("prioritized", **options)
    assert replay.options["exploration"] == [[0, 0.3], [200, 0.05]]


def test_tokens_reach_the_children_of_a_composite() -> None:
    by_tokens: Any = {"points": [[0, 0.0], [1000, 0.5]], "by": "tokens"}
    mixture = rw.Mixture(pool(), lanes={"replay": (1.0, rw.PrioritizedReplay(exploration=by_tokens))})
    assert mixture.counts_tokens
    assert not rw.Mixture(lanes={"replay": (1.0, rw.PrioritizedReplay())}).counts_tokens
    mixture.count_tokens(500)
    assert mixture.metrics()["replay/exploration"] == 0.25
    resumed = rw.Mixture(pool(), lanes={"replay": (1.0, rw.PrioritizedReplay(exploration=by_tokens))})
    resumed.load_state_dict(json.loads(json.dumps(mixture.state_dict())))
    assert resumed.metrics()["replay/exploration"] == 0.25
