"""Answers that look right and earned nothing."""

from rollwise.profiling.suspects import find_suspect


def test_suspects() -> None:
    def found(recorded: str | None, *texts: str) -> tuple[str, int] | None:
        suspect = find_suspect("p", recorded, texts, [0.0] * len(texts))
        return None if suspect is None else (suspect.kind, suspect.rollouts)

    assert found("7", "so 7", "so 8", "it is 7.0") == ("answer-given", 2)
    assert found("700", "700 or 8", "9") == ("answer-within", 1)
    assert found("7", "7 or 8", "9") is None  # one digit may stand anywhere by chance
    assert found("7", "so 8", "8", r"\boxed{8}") == ("all-agree", 3)
    assert found("7", "so 8", "9") is None
    assert found("7", "so 8") is None  # one rollout agrees with itself
    assert found(None, "8", "8") is None
