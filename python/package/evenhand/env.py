"""An environment for learning who should start next, with the API of gymnasium (an extra: `pip install evenhand[env]`).

>>> import evenhand as eh
>>> from evenhand.env import SchedulingEnv
>>> env = SchedulingEnv(eh.generate(tasks=300, users=5, days=1), capacity=0.5)
>>> observation, info = env.reset(seed=1)
>>> terminated = False
>>> while not terminated:
...     action = int(info["action_mask"].argmax())
...     observation, reward, terminated, truncated, info = env.step(action)
>>> info["started"] > 0
True
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

try:
    import gymnasium
    import numpy as np
    from gymnasium import spaces
except ImportError as _error:
    from ._errors import InputError as _InputError

    raise _InputError("evenhand.env needs gymnasium and NumPy: pip install gymnasium numpy") from _error

from . import _native
from ._errors import InputError
from ._workload import Workload

#: Metrics that a reward follows, by their names in summary.json, and whether less is better.
METRICS: Mapping[str, bool] = {
    "mean_wait_s": True,
    "users_mean_wait_s": True,
    "mean_bounded_slowdown": True,
    "max_mean_wait_s": True,
    "jain_wait": False,
}

Observation = dict[str, Any]
Info = dict[str, Any]


class SchedulingEnv(gymnasium.Env[Observation, np.int64]):
    """A pool on which users' tasks wait: every step starts the first waiting task of the user whose number is the action.

    A step is a decision of the simulation that `evenhand.study` runs with the scheduler `strict`: it comes up whenever two
    or more users wait. If the task does not fit, nothing starts until a task ends or arrives (with `blocking=False`, until
    then the others are asked). An action of a user who does not wait stands for the next waiting user by number;
    `info["action_mask"]` says who waits.

    The observation has a row for each user: `waiting`, `shares` held and `demand` of the first waiting task (over the
    capacity, by resource), `age_s` of that task, `queued` tasks, `mean_wait_s` so far; and `free`, by resource.

    The reward follows a metric of the study: the rewards of an episode add up to that metric at its end, negated where less
    is better. `info` has all metrics so far, among them `jain_wait`.

    workload: the tasks, or a function that makes a workload of a seed, for another one in every episode.
    capacity: a multiple of the mean use, or amounts by resource.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012

    def __init__(
        self,
        workload: Workload | Callable[[int], Workload],
        *,
        capacity: float | Fraction | Mapping[str, float | str] = 0.5,
        reward: str = "users_mean_wait_s",
        blocking: bool = True,
    ) -> None:
        if reward not in METRICS:
            raise InputError(f"reward: found {reward!r}, expected one of: {', '.join(METRICS)}")
        self._make = None if isinstance(workload, Workload) else workload
        self._capacity, self._reward, self._blocking = capacity, reward, blocking
        self._episode: _native.Episode | None = None
        self._only_step: tuple[Observation, float, bool, bool, Info] | None = None
        self._metric = 0.0
        self._waiting = np.zeros(0, dtype=np.int8)
        self._replay = self._replay_of(workload if isinstance(workload, Workload) else workload(0))
        #: The names of the users, by number, and of the resources, by column.
        self.users: Sequence[str] = self._replay.users
        self.resources: Sequence[str] = self._replay.resources
        n, r = len(self.users), len(self.resources)
        self.action_space = spaces.Discrete(n)
        self.observation_space = spaces.Dict(
            {
                "waiting": spaces.MultiBinary(n),
                "shares": spaces.Box(0.0, 1.0, (n, r), np.float64),
                "demand": spaces.Box(0.0, 1.0, (n, r), np.float64),
                "age_s": spaces.Box(0.0, np.inf, (n,), np.float64),
                "queued": spaces.Box(0, np.iinfo(np.int64).max, (n,), np.int64),
                "mean_wait_s": spaces.Box(0.0, np.inf, (n,), np.float64),
                "free": spaces.Box(0.0, 1.0, (r,), np.float64),
            }
        )

    def _replay_of(self, workload: Workload) -> _native.Replay:
        amounts: list[tuple[str, str]] = []
        factor = None
        if isinstance(self._capacity, Mapping):
            amounts = [(name, str(amount)) for name, amount in self._capacity.items()]
        else:
            factor = str(self._capacity)
        return _native.Replay(workload._store_path(), factor, amounts, self._blocking)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Observation, Info]:
        """Begins an episode. Only a workload that is a function of a seed depends on the seed."""
        super().reset(seed=seed)
        self.close()
        if self._make is not None:
            replay = self._replay_of(self._make(int(self.np_random.integers(2**31))))
            if (len(replay.users), replay.resources) != (len(self.users), self.resources):
                raise InputError(
                    f"the workload has {len(replay.users)} users, expected {len(self.users)} as at the first call"
                )
            self._replay = replay
        self._episode = self._replay.begin()
        self._metric = 0.0
        observation, reward, is_end, info = self._advance(None)
        # No decision ever comes up: the first step ends the episode.
        self._only_step = (observation, reward, True, False, info) if is_end else None
        # What started without a choice counts for the first step.
        self._metric = 0.0
        return observation, info

    def step(self, action: np.int64 | int) -> tuple[Observation, float, bool, bool, Info]:
        """Starts a task of the user `action`, and goes on to the next decision, or to the end of the episode."""
        if self._only_step is not None:
            step, self._only_step = self._only_step, None
            return step
        if self._episode is None:
            raise InputError("step: the episode has ended or has not begun, expected a reset")
        if not self.action_space.contains(np.int64(action)):
            raise InputError(f"step: found action {action!r}, expected a user's number below {len(self.users)}")
        waiting = np.flatnonzero(self._waiting)
        user = int(waiting[np.searchsorted(waiting, action) % len(waiting)])
        observation, reward, terminated, info = self._advance(user)
        return observation, reward, terminated, False, info

    def close(self) -> None:
        """Ends the episode."""
        if self._episode is not None:
            self._episode.close()
            self._episode = None

    def _advance(self, user: int | None) -> tuple[Observation, float, bool, Info]:
        assert self._episode is not None
        is_end, now, arrays, metrics = self._episode.step(user)
        names = ("waiting", "shares", "demand", "age_s", "queued", "mean_wait_s", "free")
        observation = dict(zip(names, arrays, strict=True))
        self._waiting = arrays[0]
        value = float(metrics[self._reward])
        reward = self._metric - value if METRICS[self._reward] else value - self._metric
        self._metric = value
        if is_end:
            self.close()
        return observation, reward, is_end, {"now_s": now, "action_mask": arrays[0].copy(), **metrics}
