"""Policies in machine code: they decide as those of the program do, and what is wrong with them is an exception."""

from __future__ import annotations

import ctypes
import functools
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from evenhand.compiled import KEY_FUNCTION, CompiledPolicy, include, numba_signature

import evenhand as eh

SOURCE = Path(__file__).parents[1] / "examples" / "compiled_policy.c"
FAILURES = """
#include "evenhand_policy.h"
#define SIGNATURE double now, int64_t users, int64_t resources, const int64_t *user, const double *shares, \\
    const double *demand, const double *weight, const double *submitted, const int64_t *position, \\
    const double *requested, double *keys, void *data
int32_t seven(SIGNATURE) { return 7; }
int32_t unwritten(SIGNATURE) { for (int64_t i = 1; i < users; i++) keys[i] = 0; return 0; }
int32_t beyond(SIGNATURE) { for (int64_t i = 0; i <= users; i++) keys[i] = 0; return 0; }
int32_t before(SIGNATURE) { for (int64_t i = -1; i < users; i++) keys[i] = 0; return 0; }
int32_t by_data(SIGNATURE) { for (int64_t i = 0; i < users; i++) keys[i] = ((double *)data)[user[i]]; return 0; }
/* The order of its rows, and that everything is in its place. */
int32_t checks(SIGNATURE) {
    for (int64_t i = 0; i < users; i++) {
        if (i > 0 && user[i] <= user[i - 1]) return 1;
        if (submitted[i] > now || position[i] < 0 || weight[i] <= 0 || requested[i] < 0) return 2;
        for (int64_t r = 0; r < resources; r++) {
            double share = shares[i * resources + r], part = demand[i * resources + r];
            if (!(share >= 0 && share <= 1.000001 && part >= 0 && part <= 1.000001)) return 3;
        }
        keys[i] = submitted[i];
    }
    return 0;
}
evenhand_key_function has_the_signature = seven;
"""


def compiled(source: Path, folder: Path) -> ctypes.CDLL:
    library = folder / f"{source.stem}.so"
    flags = ["-Wall", "-Wno-unused-parameter", "-Werror", "-std=c99", "-O2", "-shared", "-fPIC", f"-I{include()}"]
    subprocess.run(["cc", *flags, "-o", library, source], check=True)
    return ctypes.CDLL(str(library))


@pytest.fixture(scope="session")
def example(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return compiled(SOURCE, tmp_path_factory.mktemp("example"))


@pytest.fixture(scope="session")
def failing(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    folder = tmp_path_factory.mktemp("failing")
    source = folder / "failing.c"
    source.write_text(FAILURES)
    return compiled(source, folder)


def starts(study: eh.Study, policy: str) -> list[Any]:
    return [study.tasks_of(run["id"])["start_ns"] for run in study.summary["runs"] if run["policy"] == policy]


@pytest.mark.parametrize("options", [{}, {"scheduler": "easy"}, {"no_blocking": True}, {"threads": 2}], ids=str)
def test_drf_in_c_equals_the_built_in_in_every_start(
    workload: eh.Workload, example: ctypes.CDLL, options: dict[str, Any]
) -> None:
    weights = {user: 1 + i % 3 for i, user in enumerate(workload.users)}
    mine = [
        CompiledPolicy(example.drf, name="c-drf"),
        CompiledPolicy(example.drf, name="c-user-drf", method="user_key"),
    ]
    study = eh.study(workload, policies=["drf", "fifo", *mine], capacity=[0.4, 0.7], weights=weights, **options)
    expected = starts(study, "drf")
    assert len(expected) == 2 and expected != starts(study, "fifo")
    assert starts(study, "c-drf") == expected
    assert starts(study, "c-user-drf") == expected


def test_a_function_is_given_in_several_ways(workload: eh.Workload, example: ctypes.CDLL) -> None:
    address = ctypes.cast(example.drf, ctypes.c_void_p).value
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    name = b"evenhand_key_v1"
    ways = {
        "ctypes": example.drf,
        "typed": KEY_FUNCTION(address),
        "address": address,
        "capsule": new(address, name, None),
    }
    mine = [CompiledPolicy(function, name=way) for way, function in ways.items()]
    study = eh.study(workload, policies=["drf", *mine], capacity=0.5)
    for way in ways:
        assert starts(study, way) == starts(study, "drf"), way
    with pytest.raises(eh.InputError, match='a capsule of another name, expected "evenhand_key_v1"'):
        CompiledPolicy(new(address, b"another", None), name="other")


def test_a_function_of_numba_equals_the_built_in(workload: eh.Workload) -> None:
    numba = pytest.importorskip("numba")

    @numba.cfunc(numba_signature())  # type: ignore[untyped-decorator]
    def drf(  # type: ignore[no-untyped-def]
        now, users, resources, user, shares, demand, weight, submitted, position, requested, keys, data
    ):
        held = numba.carray(shares, (users, resources))
        for row in range(users):
            keys[row] = held[row].max() / weight[row]
        return 0

    study = eh.study(workload, policies=["drf", CompiledPolicy(drf, name="numba-drf")], capacity=0.5)
    assert starts(study, "numba-drf") == starts(study, "drf")

    @numba.cfunc(numba.types.int64(numba.types.int64))  # type: ignore[untyped-decorator]
    def other(x):  # type: ignore[no-untyped-def]
        return x

    with pytest.raises(eh.InputError, match="function: found 1 arguments, expected 12: now, users, "):
        CompiledPolicy(other, name="other")


@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        ("seven", "the policy seven: ValueError: the function returned status 7, expected 0"),
        ("unwritten", "key returned NaN for user "),
        ("beyond", "the function wrote beyond its "),
        ("before", "the function wrote beyond its "),
    ],
)
def test_a_function_that_fails_is_an_exception(
    workload: eh.Workload, failing: ctypes.CDLL, function: str, sentence: str
) -> None:
    policy = CompiledPolicy(failing[function], name=function)
    for _ in range(2):
        with pytest.raises(eh.PolicyError) as caught:
            eh.study(workload, policies=["fifo", policy], capacity=[0.5, 0.8])
        assert sentence in str(caught.value)
        assert isinstance(caught.value.__cause__, ValueError)


def test_a_function_gets_what_its_header_promises(workload: eh.Workload, failing: ctypes.CDLL) -> None:
    policy = CompiledPolicy(failing.checks, name="checks")
    study = eh.study(workload, policies=["fifo", policy], capacity=0.5)
    assert starts(study, "checks") == starts(study, "fifo")


@pytest.mark.parametrize("method", ["key", "user_key"])
def test_a_function_gets_its_data(workload: eh.Workload, failing: ctypes.CDLL, method: Any) -> None:
    users = len(workload.users)
    order = np.arange(users, dtype=np.float64)[::-1].copy()
    array = (ctypes.c_double * users)(*order)
    address = ctypes.addressof(array)

    class LastFirst:
        def key(self, view: eh.View) -> Any:
            return -view.users

    policies = [
        CompiledPolicy(failing.by_data, name=name, method=method, data=data)
        for name, data in {"numpy": order, "ctypes": array, "address": address}.items()
    ]
    study = eh.study(workload, policies=[LastFirst, *policies], capacity=0.5)
    for policy in policies:
        assert starts(study, policy.name) == starts(study, "last-first"), policy
    with pytest.raises(eh.InputError, match="data: found an array with gaps"):
        CompiledPolicy(failing.by_data, name="gaps", data=np.zeros(9)[::2])
    with pytest.raises(eh.InputError, match="data: found list, expected an array of NumPy"):
        CompiledPolicy(failing.by_data, name="list", data=[1.0])


def test_what_is_no_function_is_refused(failing: ctypes.CDLL) -> None:
    number = ctypes.c_int(5)
    wrong = ctypes.CFUNCTYPE(ctypes.c_int64, *KEY_FUNCTION._argtypes_)
    narrow = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_float, *KEY_FUNCTION._argtypes_[1:])
    address = ctypes.cast(failing.seven, ctypes.c_void_p).value
    for function, sentence in [
        (0, "function: found 0x0, where no machine code is"),
        (-1, "function: found -1, expected an address"),
        (1 << 64, "function: found 18446744073709551616, expected an address"),
        (ctypes.addressof(number), "function: found 0x[0-9a-f]+, where no machine code is"),
        (len, "function: found builtin_function_or_method, expected a function of ctypes"),
        ("drf", "function: found str, expected a function of ctypes"),
        (wrong(address), "function: found int64 as the result, expected int32"),
        (narrow(address), "function: found c_float as argument now, expected double"),
    ]:
        with pytest.raises(eh.InputError, match=sentence):
            CompiledPolicy(function, name="wrong")
    with pytest.raises(eh.InputError, match='method: found "next", expected key or user_key'):
        CompiledPolicy(failing.seven, name="seven", method="next")  # type: ignore[arg-type]
    with pytest.raises(eh.InputError, match="CompiledPolicy has the name 'a b', expected letters"):
        eh.study(eh.generate(tasks=50, users=2, days=1), policies=CompiledPolicy(failing.seven, name="a b"), capacity=0.5)


def test_an_exception_of_a_callback_in_python_is_found(workload: eh.Workload) -> None:
    """ctypes reports it and returns any number: it is found by the status, or by the keys, which are not written."""

    @KEY_FUNCTION
    def raises(*arguments: Any) -> int:
        raise ZeroDivisionError

    unraisable: list[Any] = []
    before, sys.unraisablehook = sys.unraisablehook, unraisable.append
    try:
        with pytest.raises(eh.PolicyError, match="the policy raises: ValueError: "):
            eh.study(workload, policies=CompiledPolicy(raises, name="raises"), capacity=0.5)
    finally:
        sys.unraisablehook = before
    assert isinstance(unraisable[0].exc_value, ZeroDivisionError)


def test_nothing_is_unloaded_while_a_policy_needs_it(workload: eh.Workload) -> None:
    """The function and the data live as long as the policy, of which a study has its own."""
    calls: list[int] = []

    def policy() -> CompiledPolicy:
        @KEY_FUNCTION
        def first(*arguments: Any) -> int:
            calls.append(1)
            users, keys, data = arguments[1], arguments[10], ctypes.cast(arguments[11], ctypes.POINTER(ctypes.c_double))
            for row in range(users):
                keys[row] = data[0]
            return 0

        return CompiledPolicy(first, name="first", data=np.array([3.5]))

    make = functools.partial(eh.study, workload, capacity=0.5, tasks=False)
    assert len(make(policies=policy()).runs) == 1 and calls
