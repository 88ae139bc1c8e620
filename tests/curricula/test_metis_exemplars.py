"""Which examples METIS's judge is shown, and what it reads of a prompt; every number is worked out beside it."""

import logging
from typing import Any

import numpy as np
import pytest

import rollwise as rw
from rollwise.errors import MissingColumnError
from rollwise.judges import Exemplar, InContextJudge

SOLVED = {"p0": 0, "p1": 1, "p2": 3, "p3": 4, "p4": 2}
"""Of 8: variances 0, 7/64 = .109, 15/64 = .234, 1/4 and 12/64 = .1875."""


def plain(n: int, **columns: list[str]) -> rw.PromptPool:
    ids = [f"p{i}" for i in range(n)]
    return rw.PromptPool(ids=ids, prompts=[f"prompt {i}" for i in range(n)], columns=columns)


def told(judge: InContextJudge, pool: rw.PromptPool, slots: list[int], variances: list[float]) -> None:
    n = len(slots)
    judge.learn(rw.Prompts(pool, np.array(slots)), np.full(n, 0.5), np.array(variances), np.full(n, 8))


def shown(judge: InContextJudge, prompt_id: str | None = None) -> list[tuple[str, float]]:
    return [(pair.text, pair.variance) for pair in judge.shown_to(prompt_id)]


def test_spread_shows_the_newest_low_moderate_and_high_pair() -> None:
    """Thirds of [0, 1/4] end at .083 and .167. Low: p0 alone. Moderate: p1. High: the newest of p2, p3, p4, p4's .1875.

    p0 itself is shown the newest others in place of a low one: p3 besides p1 and p4, rising.
    """
    judge = InContextJudge(exemplar_choice="spread")
    judge.bind(pool := plain(5), 0)
    variances = [k * (8 - k) / 64 for k in SOLVED.values()]
    for slot in range(5):  # a step each, so that the order is theirs
        told(judge, pool, [slot], variances[slot : slot + 1])
    assert shown(judge) == [("prompt 0", 0.0), ("prompt 1", 0.109375), ("prompt 4", 0.1875)]
    assert shown(judge, "p0") == [("prompt 1", 0.109375), ("prompt 4", 0.1875), ("prompt 3", 0.25)]
    (question,) = judge.questions(0, rw.Prompts(pool, np.array([0])))
    assert question.exemplars == judge.shown_to("p0")
    assert judge.offered("p0") == judge.offered("other") == 3
    newest = InContextJudge()
    newest.bind(pool, 0)
    for slot in range(5):
        told(newest, pool, [slot], variances[slot : slot + 1])
    assert [text for text, _ in shown(newest)] == ["prompt 2", "prompt 3", "prompt 4"]


def test_a_prompts_newer_pair_replaces_its_older_one() -> None:
    judge = InContextJudge(exemplar_choice="spread")
    judge.bind(pool := plain(2), 0)
    told(judge, pool, [0, 1], [0.0, 0.25])
    told(judge, pool, [0], [0.12])
    assert shown(judge) == [("prompt 0", 0.12), ("prompt 1", 0.25)]


def test_spread_forgets_what_256_newer_pairs_have_followed() -> None:
    judge = InContextJudge(exemplar_choice="spread")
    judge.bind(pool := plain(300), 0)
    told(judge, pool, [0], [0.0])
    told(judge, pool, list(range(1, 256)), [0.25] * 255)
    assert shown(judge)[0] == ("prompt 0", 0.0)
    told(judge, pool, [256], [0.25])
    assert [variance for _, variance in shown(judge)] == [0.25] * 3
    assert len(judge.state_dict()["memory"]) == 256


def test_a_context_without_room_keeps_what_is_spread() -> None:
    """Of three: the middle one alone, or the lowest and the highest; of the newest, the newest."""
    pairs = tuple(Exemplar(str(v), v) for v in (0.0, 0.1, 0.2))
    spread = rw.Question("q0", "p", "x", pairs, InContextJudge().format, spread=True)
    newest = rw.Question("q0", "p", "x", pairs, InContextJudge().format)
    assert [[e.variance for e in spread.kept(n)] for n in range(4)] == [[], [0.1], [0.0, 0.2], [0.0, 0.1, 0.2]]
    assert [[e.variance for e in newest.kept(n)] for n in range(4)] == [[], [0.2], [0.1, 0.2], [0.0, 0.1, 0.2]]


@pytest.mark.parametrize("exemplars", [0, 1, 3, 9])
def test_spread_goes_on_after_a_resume(exemplars: int) -> None:
    def run(metis: rw.METIS, steps: int) -> list[Any]:
        log = []
        for _ in range(steps):
            questions = metis.consult(4)
            log.append([q.exemplars for q in questions])
            metis.advise([rw.Answer(q.id, f"\\boxed{{0.{int(q.prompt_id[1:]) % 25:02}}}") for q in questions])
            tickets = metis.ask(4)
            metis.tell([rw.Outcome(t.id, [1.0] * (int(t.prompt_id[1:]) % 5) + [0.0] * 4) for t in tickets])
        return log

    made: dict[str, Any] = {"exemplars": exemplars, "exemplar_choice": "spread", "rails": "off", "seed": 3}
    whole = rw.METIS(plain(60), **made)
    run(whole, 3)
    resumed = rw.METIS(plain(60), **made)
    resumed.load_state_dict(whole.state_dict())
    assert run(resumed, 3) == run(whole, 3)
    if exemplars:
        with pytest.raises(rw.StateError, match="exemplar_choice"):
            rw.METIS(plain(60), **made | {"exemplar_choice": "newest"}).load_state_dict(whole.state_dict())


# ---- what the judge reads ----

SECRETS = {"text": ["Q: 1+1 A: it is 2"] * 4, "solution": ["2"] * 4, "answer": ["2"] * 4, "hint": ["think"] * 4}


def read_by(metis: rw.METIS) -> set[str]:
    """All that the judge is shown: candidates and, in the second step, exemplars."""
    seen = set()
    for _ in range(2):
        questions = metis.consult(2)
        seen |= {q.candidate for q in questions} | {e.text for q in questions for e in q.exemplars}
        metis.advise([rw.Answer(q.id, r"\boxed{0.1}") for q in questions])
        metis.tell([rw.Outcome(t.id, [1.0, 0.0]) for t in metis.ask(2)])
    return seen


def test_the_judge_never_sees_a_column_that_was_not_named(caplog: pytest.LogCaptureFixture) -> None:
    """A column called `text` included: it may hold the solution."""
    pool = plain(4, **SECRETS)
    with caplog.at_level(logging.INFO):
        assert read_by(rw.METIS(pool, rails="off")) == {f"prompt {i}" for i in range(4)}
        assert "to show it the column 'text', give judge_column='text'" in caplog.text
        assert read_by(rw.METIS(pool, rails="off", judge_column="hint")) == {"think"}
        assert "the judge reads the column 'hint' in place of the prompts, and no other column" in caplog.text


def test_other_judges_read_the_named_column_alone() -> None:
    class Reads(rw.Judge):
        seen: set[str] = set()

        def predict(self, candidates: rw.Prompts) -> np.ndarray:
            self.seen.update(candidates.texts + candidates.prompts)
            return np.zeros(len(candidates))

        def learn(self, told: rw.Prompts, mean: Any, variance: Any, count: Any) -> None:
            self.seen.update(told.texts + told.prompts)

    for made in (rw.Judged, rw.PCL):
        for column, seen in ((None, {f"prompt {i}" for i in range(4)}), ("hint", {"think"})):
            Reads.seen.clear()
            curriculum = made(plain(4, **SECRETS), judge=Reads(), judge_column=column)
            for _ in range(2):
                curriculum.tell([rw.Outcome(t.id, [1.0, 0.0]) for t in curriculum.ask(4)])
            assert Reads.seen == seen


def test_a_column_that_is_not_there_is_an_error_at_the_start() -> None:
    with pytest.raises(MissingColumnError, match="the judge needs the column 'prose'.*judge_column"):
        rw.METIS(plain(2), judge_column="prose")


def test_a_judge_that_reads_vectors_takes_no_column_of_texts() -> None:
    with pytest.raises(rw.ConfigError, match="judge_column='prose'.*the column 'embedding'; leave it out"):
        rw.PCL(judge="frozen", judge_column="prose")


def test_a_state_of_another_column_is_refused() -> None:
    state = rw.METIS(plain(4, **SECRETS), judge_column="hint").state_dict()
    rw.METIS(plain(4, **SECRETS), judge_column="hint").load_state_dict(state)
    with pytest.raises(rw.StateError, match="hint"):
        rw.METIS(plain(4, **SECRETS)).load_state_dict(state)


def test_a_run_says_at_its_start_what_the_judge_reads() -> None:
    """As `rollwise train` does in its first lines; nothing of methods without a judge, or whose judge reads no text."""
    pytest.importorskip("trl")
    from rollwise.training.parts import judge_notes

    column = "the judge reads the column 'prose' in place of the prompts, and no other column"
    assert judge_notes(rw.METIS()) == ["the judge reads the prompts, and no column"]
    assert judge_notes(rw.METIS(judge_column="prose")) == [column]
    assert judge_notes(rw.PCL(judge=rw.Judge(), judge_column="prose")) == [column]
    assert judge_notes(rw.PCL(judge="frozen")) == judge_notes(rw.Uniform()) == []
