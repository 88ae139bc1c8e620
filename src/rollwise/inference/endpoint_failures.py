"""What goes wrong with an endpoint: which failures are a prompt's own, and when the endpoint counts as down."""

from __future__ import annotations

from rollwise.errors import RewardError

_HOPELESS = 3
"""So many prompts that the endpoint fails, and none that succeeds, and it counts as down."""

_REFUSED = 16
"""So many prompts that are refused for themselves, and none that succeeds, and it is not for themselves."""

_PASSING = (408, 429)
"""Refusals that say something of the endpoint's state, as 5xx do, and nothing of the prompt."""


class BadReplyError(RewardError):
    """A reply that holds no samples, or a prompt that can't be sent.

    Args:
        message: What is wrong.
        of_endpoint: It is no reply of an OpenAI-compatible endpoint at all; else it is this prompt's failure alone.
    """

    def __init__(self, message: str, *, of_endpoint: bool = False) -> None:
        super().__init__(message)
        self.of_endpoint = of_endpoint


class BrokenReplyError(BadReplyError):
    """A reply that began, and broke off or went silent. What came of it stays good."""

    def __init__(self, message: str) -> None:
        super().__init__(message, of_endpoint=True)


class Watch:
    """Says whether nothing but failures comes from an endpoint, once N prompts are asked, several at once.

    A prompt that is refused for itself, as one that is too long, says nothing of the endpoint; many, and none that is
    not, say that an option can't be served. And failures come quickly where good answers take their time: all prompts
    under way at the first failure must have ended too.

    Args:
        n: Prompts to ask.
        done: Whether others succeeded before, so that a few failures prove nothing.

    Attributes:
        last: The endpoint's last failure in a line, else the first prompt's that was refused.
    """

    def __init__(self, n: int, *, done: bool = False) -> None:
        self.limit = _HOPELESS if done else min(_HOPELESS, n)
        self.last = ""
        self._done, self._kept, self._failed, self._refused = done, False, 0, 0
        self._under_way: set[int] = set()
        self._elders: set[int] = set()

    def begin(self, at: int) -> None:
        """Prompt `at` is asked."""
        self._under_way.add(at)

    def succeeded(self) -> None:
        """A prompt was answered."""
        self._kept = True

    def failed(self, at: int, error: Exception) -> None:
        """Prompt `at` failed for good."""
        self._under_way.discard(at)
        self._elders.discard(at)
        if is_of_endpoint(error):
            if not self._failed:
                self._elders = set(self._under_way)
            self._failed += 1
            self.last = one_line(error)
        else:
            self._refused += 1
            self.last = self.last or one_line(error)

    def down(self) -> bool:
        """Whether to ask no more."""
        if self._kept:
            return False
        refused = self._refused >= _REFUSED and not self._done
        return refused or (self._failed >= self.limit and not self._elders)


def is_of_endpoint(error: Exception) -> bool:
    """Whether a failure is the endpoint's: a lost connection, a timeout, 429, 5xx; not one that the prompt caused."""
    if isinstance(error, BadReplyError):
        return error.of_endpoint
    status = getattr(error, "status_code", None)
    return status is None or status >= 500 or status in _PASSING


def one_line(error: Exception) -> str:
    """An error and its cause in one line of at most 300 characters."""
    cause = str(error.__cause__ or "")
    cause = f" ({cause})" if cause and cause not in str(error) else ""
    return " ".join(f"{error}{cause}".split())[:300]
