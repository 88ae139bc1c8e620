"""The service behind a real Ray actor: callers, restarts, kills with -9, two drivers on one name."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rollwise as rw
from rollwise.engines import ray_actor

ray = pytest.importorskip("ray")
ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])  # actors can't import the tests
SOURCE = str(Path(rw.__file__).parents[1])


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[Any]:
    folder = tempfile.mkdtemp(prefix="r", dir="/tmp")  # the paths of Ray's sockets must be short
    os.environ["PYTHONPATH"] = os.pathsep.join([SOURCE, os.environ.get("PYTHONPATH", "")])
    context = ray.init(num_cpus=8, include_dashboard=False, object_store_memory=100_000_000, _temp_dir=folder)
    yield context
    ray.shutdown()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def name(request: pytest.FixtureRequest) -> Iterator[str]:
    """A service's name; the service is ended afterwards."""
    name = request.node.name
    yield name
    try:
        actor = ray.get_actor(name, namespace=ray_actor.NAMESPACE)
    except ValueError:
        return
    ray.kill(actor)


def make(n: int = 60) -> rw.Curriculum:
    pool = rw.PromptPool(ids=[f"p{i}" for i in range(n)], columns={"category": [f"c{i % 7}" for i in range(n)]})
    return rw.Recommended(pool, seed=0, expire_after=None)


def outcomes(tickets: list[rw.Ticket]) -> list[rw.Outcome]:
    """All solved for even prompts, none for odd: an outcome that is credited to another prompt shows."""
    return [rw.Outcome(ticket.id, [float(int(ticket.prompt_id[1:]) % 2 == 0)] * 4) for ticket in tickets]


def pid(service: ray_actor.RayService) -> int:
    return ray.get(service.actor.__ray_call__.remote(lambda actor: os.getpid()))


def streaks(actor: ray_actor.Actor) -> dict[str, int]:
    curriculum = actor.service.desk.curriculum
    return dict(zip(curriculum.pool.ids, curriculum.columns["streak"].tolist(), strict=True))


def call(service: ray_actor.RayService, name: str, tickets: int) -> list[rw.Ticket]:
    """Ask and tell until a number of outcomes are taken; return every ticket that was issued."""
    had: list[rw.Ticket] = []
    taken = turn = 0
    while taken < tickets:
        turn += 1
        mine = service.ask(min(5, tickets - taken), worker=name, request=f"{name}-{turn}", n_rollouts=4, timeout=60.0)
        had += mine
        taken += service.tell(outcomes(mine[::-1])).taken
    return had


def test_eight_callers_and_a_kill(name: str, tmp_path: Path) -> None:
    """1,000 tickets: none lost, doubled or credited to another prompt."""
    service = ray_actor.start(name, lambda: make(600), folder=str(tmp_path), max_open=60)
    caller = ray.remote(num_cpus=0)(call)
    going = [caller.remote(service, f"w{i}", 125) for i in range(8)]
    while service.metrics()["told"] < 400:
        time.sleep(0.01)
    service.save(1)
    saved = service.metrics()["told"]
    while service.metrics()["told"] < saved + 100:
        time.sleep(0.01)
    before = pid(service)
    os.kill(before, 9)
    had = [ticket for tickets in ray.get(going) for ticket in tickets]
    assert pid(service) != before
    assert len({ticket.id for ticket in had}) == len(had)  # none doubled
    again = service.tell(outcomes(had))  # what was told between the save and the kill is told once more
    assert {one.status for one in again.refused} == {"foreign"}
    missing = int(1000 - service.metrics()["told"])
    assert 0 < missing <= len(again.refused)
    had += call(service, "last", missing)
    numbers = service.metrics()
    assert (numbers["told"], numbers["asked"], numbers["open"], numbers["expired"]) == (1000, 1000, 0, 0)
    mine = [ticket for ticket in had if service.ticket_status(ticket.id) == "told"]
    assert len(mine) == 1000  # none lost
    expected = Counter(ticket.prompt_id for ticket in mine)
    found = ray.get(service.actor.__ray_call__.remote(streaks))
    assert {prompt: abs(streak) for prompt, streak in found.items() if streak} == expected
    assert all((streak > 0) == (int(prompt[1:]) % 2 == 0) for prompt, streak in found.items() if streak)


def test_a_restarted_service_has_its_open_tickets(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # the actor's working directory is that in which Ray was started
    service = ray_actor.start(name, make, folder="states")
    service.advance(4)
    kept = service.ask(6, worker="w", request="r")
    assert service.save(4) == tmp_path / "states/curriculum-4.state"
    lost = service.ask(6, worker="w")
    os.kill(pid(service), 9)
    assert service.status() == {"step": 4, "open": 6, "by_worker": {"w": 6}, "waiting": 0, "saved_step": 4}
    assert service.ask(6, worker="w", request="r") == kept
    told = service.tell(outcomes(kept + lost))
    assert (told.taken, {one.status for one in told.refused}) == (6, {"foreign"})


def test_without_a_folder_a_crash_ends_it(name: str) -> None:
    service = ray_actor.start(name, make)
    os.kill(pid(service), 9)
    with pytest.raises(ray.exceptions.RayActorError):
        service.status()


def test_a_killed_caller_gives_up_its_tickets(name: str) -> None:
    class Caller:
        def ask(self, service: ray_actor.RayService) -> int:
            service.ask(4, worker="w")
            return os.getpid()

    service = ray_actor.start(name, make)
    caller = ray.remote(num_cpus=0)(Caller).remote()
    os.kill(ray.get(caller.ask.remote(service)), 9)
    assert service.status()["by_worker"] == {"w": 4}
    assert service.lose("w") == 4
    assert service.metrics()["expired"] == 4


def test_an_ask_waits_for_room(name: str) -> None:
    service = ray_actor.start(name, make, max_open=4)
    held = service.ask(4)
    waiting = service.actor.ask.remote(2, "w", "r", None, 4, 60.0)
    while service.status()["waiting"] == 0:
        time.sleep(0.01)
    service.tell(outcomes(held))
    assert len(ray.get(waiting)) == 2
    service.ask(2)
    assert service.ask(1, timeout=0.1) == []  # nobody calls meanwhile


def test_tickets_expire_by_seconds_while_an_ask_waits(name: str) -> None:
    service = ray_actor.start(name, make, max_open=4, expire_seconds=0.5)
    service.ask(4)
    assert len(service.ask(4, timeout=60.0)) == 4


def test_all_methods_over_ray(name: str, tmp_path: Path) -> None:
    service = ray_actor.start(name, make(), folder=str(tmp_path))
    assert (service.probe(2), service.consult(2), service.lessons()) == ([], [], [])
    service.advise([])
    tickets = service.ask(2)
    assert service.open_tickets(tickets[0].prompt_id) == tickets[:1]
    state = service.state_dict()
    assert service.tell(outcomes(tickets)).taken == 2
    service.load_state_dict(state)
    assert service.ticket_status(tickets[0].id) == "open"
    assert service.save(3) == tmp_path / "curriculum-3.state"
    assert service.load() == 3
    with pytest.raises(rw.ConfigError, match="step must be") as raised:
        service.advance(-1)
    assert "\n" not in str(raised.value)


# ---- two drivers ----


def driver(cluster: Any, code: str) -> subprocess.Popen[str]:
    """Another driver of the same cluster, in a namespace of its own."""
    begin = f"""
        import sys, time, ray, rollwise as rw
        from rollwise.engines import ray_actor
        ray.init(address={cluster.address_info["address"]!r}, namespace="another", log_to_driver=False)
        def make():
            return rw.Uniform(rw.PromptPool(ids=["a", "b", "c"]))
    """
    text = textwrap.dedent(begin) + textwrap.dedent(code)
    return subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, text=True)


def test_two_drivers_on_one_name(name: str, cluster: Any) -> None:
    service = ray_actor.start(name, make)
    service.ask(3)
    with pytest.raises(rw.ConfigError, match="runs already"):
        ray_actor.start(name, make)
    second = driver(
        cluster,
        f"""
        try:
            ray_actor.start({name!r}, make)
        except rw.ConfigError as error:
            print(error)
        print(ray_actor.start({name!r}, make, connect_if_running=True).status()["open"])
        print(len(ray_actor.connect({name!r}).ask(2)))
        """,
    )
    said = second.communicate(timeout=120)[0].splitlines()
    assert said == [
        f"a service named {name!r} runs already on this Ray cluster: connect({name!r}) to it, stop it, or give another "
        "name",
        *("3", "2"),
    ]
    assert service.status()["open"] == 5


def test_a_driver_is_killed(name: str, cluster: Any) -> None:
    """A detached service goes on."""
    other = driver(
        cluster,
        f"""
        service = ray_actor.start({name!r}, make, detached=True)
        service.ask(2, worker="w")
        print("ready", flush=True)
        time.sleep(600)
        """,
    )
    assert other.stdout is not None
    assert other.stdout.readline() == "ready\n"
    other.kill()
    other.wait()
    assert ray_actor.connect(name).status()["by_worker"] == {"w": 2}


def test_a_service_that_cannot_begin_says_why_and_leaves_its_name_free(name: str) -> None:
    """It was Ray's ActorDiedError, with a traceback of the actor's process."""
    with pytest.raises(rw.ConfigError, match="max_open must be a whole number >= 1, got 0"):
        ray_actor.start(name, make, max_open=0)
    with pytest.raises(rw.StateFileError, match="/proc"):
        ray_actor.start(name, make, folder="/proc/nowhere")
    with pytest.raises(rw.ConfigError, match="no service named"):
        ray_actor.connect(name)
    assert ray_actor.start(name, make).status()["open"] == 0


def test_no_service_of_that_name(name: str) -> None:
    with pytest.raises(rw.ConfigError, match="no service named"):
        ray_actor.connect(name)
