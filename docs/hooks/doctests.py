"""Shows the examples of docstrings as code: `>>>` and what follows up to an empty line."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

_EXAMPLE = re.compile(r"^>>> .*(?:\n.+)*", re.MULTILINE)


class Doctests(Extension):
    """Puts a fence around each example that stands outside of a section."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Called for every object that is documented."""
        if obj.docstring:
            obj.docstring.value = _EXAMPLE.sub(lambda found: f"```pycon\n{found[0]}\n```", obj.docstring.value)
