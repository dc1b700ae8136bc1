"""The Python client gives the values of the registry, and raises its errors."""

import dataclasses

import numpy as np
import pytest

from contingencies.errors import NotFoundError, UsageError, ZooError
from registry import Client, Registry
from tests.registry.makers import Zoo
from tests.registry.service.serving import free_port, running, world


def test_the_client_answers_as_the_registry_does(sqlite_zoo: Zoo) -> None:
    made = world(sqlite_zoo).guard()
    grid = np.linspace(-0.1, 1.1, 12).reshape(3, 4)
    with running(made) as url, Client(url, made.secrets["read"]) as client, Registry.open(made.path) as registry:
        for alpha in (0.1, 0.9, 1, np.float64(0.7), 2.0):
            assert client.cct("fault-a", alpha) == registry.cct("fault-a", alpha)
        assert client.cct(["fault-a", "fault-a"], 0.9) == registry.cct(["fault-a", "fault-a"], 0.9)
        for alphas in (grid, [0.9], np.array([0.1, 0.2])):
            mine, theirs = client.cct("fault-a", alphas), registry.cct("fault-a", alphas)
            for part in dataclasses.fields(theirs):
                np.testing.assert_array_equal(getattr(mine, part.name), getattr(theirs, part.name), part.name)
        for wrong, error in (("fault-b", NotFoundError), ("no such", NotFoundError)):
            for alpha in (0.9, [0.9]):
                with pytest.raises(error) as here:
                    client.cct(wrong, alpha)
                with pytest.raises(error) as there:
                    registry.cct(wrong, alpha)
                assert str(here.value) == str(there.value)
        for wrong_alpha in (float("nan"), [float("inf")], "0.9", None, [None, "x"]):
            with pytest.raises(UsageError):
                client.cct("fault-a", wrong_alpha)
        assert client.get("/api/v1/ranking", system="ieee30")["items"][0]["contingency"] == "fault-a"
        with pytest.raises(ZooError, match="token is needed"):
            Client(url).cct("fault-a", 0.9)


def test_a_service_that_is_not_there_is_said_in_a_sentence() -> None:
    with pytest.raises(ZooError, match="cannot be reached"):
        Client(f"http://127.0.0.1:{free_port()}").cct("fault-a", 0.9)
    with pytest.raises(UsageError, match="not the address of a service"):
        Client("ftp://somewhere")
