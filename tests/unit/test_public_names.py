"""The names users build on: all of them listed, in order, and explained."""

from __future__ import annotations

import inspect
import types

import pytest

import penstock

pytestmark = pytest.mark.jit_off

ROOMS = ("measures", "static")  # modules that are offered under their own name


def offered() -> list[str]:
    """What the module shows, but for its own submodules."""
    return [
        name
        for name in dir(penstock)
        if not name.startswith("_") and not isinstance(getattr(penstock, name), types.ModuleType)
    ]


def test_a_name_that_is_imported_later_is_the_one_of_its_module() -> None:
    from penstock.lab import measures
    from penstock.lab.optimum.optimum import Optimum, optimum
    from penstock.runtime.join import Join

    assert (penstock.Optimum, penstock.optimum) == (Optimum, optimum)
    assert (penstock.Join, penstock.measures) == (Join, measures)
    with pytest.raises(AttributeError, match="no attribute 'joins'"):
        _ = penstock.joins


def test_all_is_sorted_and_complete() -> None:
    constants_first = sorted(penstock.__all__, key=lambda name: (not name.isupper(), name))
    assert list(penstock.__all__) == constants_first
    public = [name for name in penstock.__all__ if name not in ("__version__", *ROOMS)]
    assert sorted(public) == sorted(name for name in offered() if name != "annotations")
    assert set(ROOMS) <= set(penstock.__all__)


@pytest.mark.parametrize("name", [n for n in penstock.__all__ if not n.startswith("_")])
def test_every_public_name_is_explained(name: str) -> None:
    """Also every public method and property of a class."""
    value = getattr(penstock, name)
    assert inspect.getdoc(value), name
    if inspect.isclass(value):
        for attribute, member in vars(value).items():
            if attribute.startswith("_") or not (
                inspect.isfunction(member) or isinstance(member, property | classmethod)
            ):
                continue
            assert inspect.getdoc(getattr(value, attribute)), f"{name}.{attribute}"


@pytest.mark.parametrize("name", ROOMS)
def test_every_name_in_a_room_is_listed_and_explained(name: str) -> None:
    room = getattr(penstock, name)
    assert inspect.getdoc(room)
    assert len(set(room.__all__)) == len(room.__all__)
    for each in room.__all__:
        value = getattr(room, each)
        assert inspect.getdoc(value), each
        if inspect.isclass(value):
            for attribute, member in vars(value).items():
                if not attribute.startswith("_") and isinstance(member, property):
                    assert inspect.getdoc(member), f"{each}.{attribute}"


@pytest.mark.parametrize(
    "name", ["PenstockError", "Stream", "WindowJoin", "InputError", "SchemaError", "__version__"]
)
def test_names_that_are_promised(name: str) -> None:
    assert hasattr(penstock, name)
