"""What a sandboxed process may use."""

from __future__ import annotations

from dataclasses import dataclass

from rollwise.options import check_number, check_whole

MIB = 2**20


@dataclass(frozen=True)
class Limits:
    """Limits of one sandbox.

    Attributes:
        seconds: Wall-clock seconds of a call, a test case or a program's tests, and its CPU seconds.
        memory: MiB of address space of each process. All processes together can use `memory * processes`.
        processes: Processes and threads at a time, with the sandbox's own one or two.
        output: KiB that a call or a test case may write, and the size of its largest file.
        disk: MiB of the only folder that can be written, `/tmp`. It is in memory, and gone with the sandbox.

    Raises:
        ConfigError: A limit is not a positive number.
    """

    seconds: float = 10.0
    memory: int = 1024
    processes: int = 16
    output: int = 1024
    disk: int = 16

    def __post_init__(self) -> None:
        check_number("seconds", self.seconds, low=0.0, high=86_400.0, open_low=True)
        for name in ("memory", "processes", "output", "disk"):
            check_whole(name, getattr(self, name), least=1)
