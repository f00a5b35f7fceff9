"""Policies of the program in other simulators and schedulers."""

from __future__ import annotations

import numbers
import operator
from collections.abc import Mapping, Sequence

from ._errors import InputError
from ._native import PolicyHandle


class LivePolicy:
    """A policy of the program that a simulator or a scheduler of yours notifies and asks whose task starts next.

    name: of the policy, as `evenhand policies` lists them; its settings are the defaults.
    capacity: whole amounts by resource, such as nodes.
    users: names, or weights by name.
    half_life: of past use, for the policies that forget: a text as `study` takes it ("8d"), or seconds. delta: the same as a
    discount a second; by default it is that of a study, 0.999999.

    A notification names the user and what the task demands. Times are seconds, and never decrease.

    >>> import evenhand as eh
    >>> drf = eh.LivePolicy("drf", capacity={"nodes": 8}, users=["ann", "bob"])
    >>> drf.waits("ann", {"nodes": 2}, submitted=0)
    >>> drf.waits("bob", {"nodes": 2}, submitted=1)
    >>> drf.next(now=1)
    'ann'
    >>> drf.started("ann", {"nodes": 2}, now=1)
    >>> drf.next(now=1)
    'bob'
    """

    def __init__(
        self,
        name: str,
        *,
        capacity: Mapping[str, int],
        users: Sequence[str] | Mapping[str, float | str],
        half_life: str | float | None = None,
        delta: str | float | None = None,
    ) -> None:
        self.name = name
        self.users = list(users)
        self._numbers = {user: number for number, user in enumerate(self.users)}
        if len(self._numbers) != len(self.users):
            twice = next(user for number, user in enumerate(self.users) if self._numbers[user] != number)
            raise InputError(f"users: found {twice!r} twice, expected each once")
        weights = [str(weight) for weight in users.values()] if isinstance(users, Mapping) else ["1"] * len(self.users)
        self.resources = list(capacity)
        whole = [(resource, _whole(resource, amount)) for resource, amount in capacity.items()]
        discount = None if delta is None else str(delta)
        self._handle = PolicyHandle(name, whole, weights, discount, _time("half_life", half_life))

    def waits(
        self,
        user: str,
        demand: Mapping[str, int] | None,
        *,
        submitted: float = 0.0,
        position: int = 0,
        requested: float = 0.0,
    ) -> None:
        """Sets the user's first waiting task, or with None that the user has none (or is passed over for now).

        position: among the tasks submitted at that time. requested: the wall time that the task asked for, in seconds. A study
        takes the run time where a task runs longer, or where the log does not have what it asked for.
        """
        amounts = None if demand is None else self._amounts(demand)
        place = _whole("position", position)
        self._handle.set_first_pending(self._number(user), amounts, submitted, place, requested)

    def started(self, user: str, demand: Mapping[str, int], *, now: float, requested: float | None = None) -> None:
        """Notifies of a start. The user's next waiting task, if there is one, is set by `waits` after that.

        requested: the wall time that the task asked for; `cpu-time` and `penalty` charge it until the task ends. By default it
        is what `waits` was given last for this user.
        """
        self._handle.started(now, self._number(user), self._amounts(demand), requested)

    def finished(
        self, user: str, demand: Mapping[str, int], *, now: float, started: float, requested: float | None = None
    ) -> None:
        """Notifies of the end of a task that started at `started`.

        requested: which of several tasks of the user with this start and demand, if they asked for different times.
        """
        self._handle.finished(now, self._number(user), self._amounts(demand), started, requested)

    def next(self, *, now: float) -> str | None:
        """The user whose first waiting task starts next; None if nobody waits."""
        number = self._handle.next(now)
        return None if number is None else self.users[number]

    def key(self, user: str, *, now: float) -> float:
        """The user's key: the lowest goes first."""
        return self._handle.key(now, self._number(user))

    def __repr__(self) -> str:
        return f"<evenhand.LivePolicy: {self.name}, {len(self.users)} users>"

    def _number(self, user: str) -> int:
        number = self._numbers.get(user)
        if number is None:
            raise InputError(f"found user {user!r}, expected one of those that the policy was made with")
        return number

    def _amounts(self, demand: Mapping[str, int]) -> list[int]:
        if unknown := [resource for resource in demand if resource not in self.resources]:
            raise InputError(f"found resource {unknown[0]!r}, expected one of: {', '.join(self.resources)}")
        return [_whole(resource, demand.get(resource, 0)) for resource in self.resources]


def _time(name: str, value: str | float | None) -> str | None:
    """A time span as the program reads it: a number is of seconds."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise InputError(f"{name}: found {value!r}, expected a text such as '8d', or seconds")
    # Without an exponent, and to the nanosecond.
    return f"{float(value):.9f}".rstrip("0").rstrip(".") + "s"


def _whole(resource: str, amount: object) -> int:
    """A whole number, also one of NumPy."""
    try:
        number = operator.index(amount)  # type: ignore[arg-type]
    except TypeError:
        number = -1
    if not 0 <= number < 1 << 53:
        raise InputError(f"{resource}: found {amount!r}, expected a whole number of at least 0")
    return number
