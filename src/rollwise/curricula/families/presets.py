"""Named settings of a method, as a paper other than its own runs it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from rollwise.options import check_name


class Presets:
    """A method with named settings: `presets` lists them, and `preset: name` in a configuration takes one."""

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    """The options of each setting that differ from the method's defaults."""

    @classmethod
    def with_preset(cls, preset: str, overrides: Mapping[str, Any]) -> dict[str, Any]:
        """The options of a preset, with `overrides` in their place.

        Raises:
            ConfigError: there is no such preset.
        """
        check_name(f"preset of {cls.__name__}", preset, cls.presets)
        return {**cls.presets[preset], **overrides}
