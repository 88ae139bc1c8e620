"""The service as a named Ray actor: `start` it in one process, `connect` from any other of the cluster."""

from __future__ import annotations

import functools
import uuid
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from rollwise.curricula import Curriculum
from rollwise.engines.actor import Actor
from rollwise.engines.service import CurriculumService
from rollwise.engines.serving.calls import Told
from rollwise.errors import ConfigError, RollwiseError, check_installed
from rollwise.judges import Answer
from rollwise.tickets.outcome import Outcome, outcomes_of
from rollwise.tickets.ticket import Ticket

P = ParamSpec("P")
T = TypeVar("T")

NAMESPACE = "rollwise"
CALLS = 10_000
"""How many calls may wait in the actor, and how many one handle may have sent: beyond it Ray raises in the caller."""


def _over_ray(method: Callable[Concatenate[CurriculumService, P], T]) -> Callable[Concatenate[RayService, P], T]:
    """The same method of a service, called over Ray."""

    @functools.wraps(method)
    def call(self: RayService, /, *arguments: P.args, **named: P.kwargs) -> T:
        return self._call(method, *arguments, **named)

    return call


class RayService:
    """The methods of `CurriculumService`, called over Ray. Made by `start` and `connect`; may be pickled.

    In a coroutine, where waiting would hold up the loop, await the actor's own methods:
    `await service.actor.ask.remote(...)`.
    """

    def __init__(self, actor: Any, name: str) -> None:
        self.actor = actor
        self.name = name

    def ask(
        self,
        n: int = 1,
        *,
        worker: str | None = None,
        request: str | None = None,
        step: int | None = None,
        n_rollouts: int | None = None,
        timeout: float = 0.0,
    ) -> list[Ticket]:
        """As `CurriculumService.ask`; without `request` it gets one, so that Ray may repeat the call."""
        request = request or uuid.uuid4().hex
        tickets: list[Ticket] = _get(self.actor.ask.remote(n, worker, request, step, n_rollouts, timeout))
        return tickets

    def tell(self, outcomes: Iterable[Outcome] | Outcome) -> Told:
        """As `CurriculumService.tell`."""
        told: Told = _get(self.actor.tell.remote(outcomes_of(outcomes)))
        return told

    def probe(
        self,
        n: int,
        *,
        worker: str | None = None,
        step: int | None = None,
        n_rollouts: int | None = None,
        wanted: int | None = None,
        request: str | None = None,
    ) -> list[Ticket]:
        """As `CurriculumService.probe`; without `request` it gets one, so that Ray may repeat the call."""
        options = {"worker": worker, "request": request or uuid.uuid4().hex}
        return self._call(CurriculumService.probe, n, step=step, n_rollouts=n_rollouts, wanted=wanted, **options)

    def advise(self, answers: Iterable[Answer]) -> None:
        """As `CurriculumService.advise`."""
        self._call(CurriculumService.advise, list(answers))

    advance = _over_ray(CurriculumService.advance)
    consult = _over_ray(CurriculumService.consult)
    lessons = _over_ray(CurriculumService.lessons)
    feedback = _over_ray(CurriculumService.feedback)
    note_score = _over_ray(CurriculumService.note_score)
    count_tokens = _over_ray(CurriculumService.count_tokens)
    lose = _over_ray(CurriculumService.lose)
    ticket_status = _over_ray(CurriculumService.ticket_status)
    open_tickets = _over_ray(CurriculumService.open_tickets)
    status = _over_ray(CurriculumService.status)
    metrics = _over_ray(CurriculumService.metrics)
    state_dict = _over_ray(CurriculumService.state_dict)
    load_state_dict = _over_ray(CurriculumService.load_state_dict)
    save = _over_ray(CurriculumService.save)  # on the actor's machine
    load = _over_ray(CurriculumService.load)

    def _call(self, method: Callable[Concatenate[CurriculumService, P], T], *arguments: P.args, **named: P.kwargs) -> T:
        result: T = _get(self.actor.call.remote(method.__name__, *arguments, **named))
        return result

    def stop(self) -> None:
        """End the actor. What was not saved is lost."""
        _ray().kill(self.actor)


def start(
    name: str,
    curriculum: Curriculum | Callable[[], Curriculum],
    *,
    connect_if_running: bool = False,
    detached: bool = False,
    max_restarts: int = 3,
    **options: Any,
) -> RayService:
    """Start the service `name`, and wait until it answers.

    Given a folder, it goes on from the newest state there, also when Ray starts it again after a crash. Without one, a
    crash ends it.

    Args:
        name: by which others of the Ray cluster `connect`.
        curriculum: bound to its pool; or a function that makes it in the actor's process, better for a large pool.
        connect_if_running: connect where a service of this name runs already, instead of raising.
        detached: whether it goes on when the driver that started it has ended.
        max_restarts: how often Ray may start it again after a crash.
        **options: of `CurriculumService`, such as `folder` and `max_open`; a relative `folder` is that of this process.

    Raises:
        ConfigError: a service of this name runs already, or an option is wrong.
        StateFileError: the folder can't be used.
        MissingExtraError: Ray is not installed.
    """
    ray = _ray()
    try:
        running = ray.get_actor(name, namespace=NAMESPACE)
    except ValueError:
        running = None
    if running is not None and connect_if_running:
        return _answering(running, name)
    if running is None:
        if options.get("folder") is not None:  # the actor's working directory is that in which Ray was started
            options["folder"] = str(Path(options["folder"]).absolute())
        remote = ray.remote(
            num_cpus=0,
            max_restarts=max_restarts if options.get("folder") is not None else 0,
            max_task_retries=-1 if options.get("folder") is not None else 0,
            max_concurrency=CALLS,
            max_pending_calls=CALLS,
        )(Actor)
        placed = remote.options(name=name, namespace=NAMESPACE, lifetime="detached" if detached else None)
        # Ray would hand over a curriculum whose arrays are read-only
        made = ray.cloudpickle.dumps(curriculum) if isinstance(curriculum, Curriculum) else curriculum
        try:
            actor = placed.remote(made, options)
        except ValueError:  # another driver was faster
            if connect_if_running:
                return connect(name)
        else:
            return _begun(actor, name)
    raise ConfigError(
        f"a service named {name!r} runs already on this Ray cluster: connect({name!r}) to it, stop it, or give another "
        "name"
    )


def connect(name: str) -> RayService:
    """The running service `name`.

    Raises:
        ConfigError: there is none.
        MissingExtraError: Ray is not installed.
    """
    ray = _ray()
    try:
        running = ray.get_actor(name, namespace=NAMESPACE)
    except ValueError:
        raise ConfigError(
            f"no service named {name!r} runs on this Ray cluster: start it first, in one process, with "
            f"rollwise.engines.ray_actor.start({name!r}, curriculum)"
        ) from None
    return _answering(running, name)


def _begun(actor: Any, name: str) -> RayService:
    """The new actor's service; one that can't begin is ended, so that its name is free."""
    try:
        return _answering(actor, name)
    except RollwiseError:
        RayService(actor, name).stop()
        raise


def _answering(actor: Any, name: str) -> RayService:
    _get(actor.ready.remote())
    return RayService(actor, name)


def _get(reference: Any) -> Any:
    """The result of a remote call; an error of rollwise's as it was raised, without Ray's frame around it."""
    import ray

    try:
        return ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, RollwiseError):
            raise error.cause from None
        raise


def _ray() -> Any:
    check_installed("ray", "a service over Ray", "ray")
    import ray

    if not ray.is_initialized():
        ray.init(namespace=NAMESPACE)
    return ray
