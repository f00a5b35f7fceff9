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
    from gymnasium.vector import AutoresetMode
    from gymnasium.vector.utils import batch_space
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

#: A multiple of the mean use, or amounts by resource.
PoolCapacity = float | Fraction | Mapping[str, float | str]

#: The arrays of an observation, in the order in which a step returns them.
_ARRAYS = ("waiting", "shares", "demand", "age_s", "queued", "mean_wait_s", "free")

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
        capacity: PoolCapacity = 0.5,
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
        return _replay_of(workload, self._capacity, self._blocking)

    def _replay_for(self, random: np.random.Generator) -> _native.Replay:
        """What an episode replays: the workload, or one of the next seed."""
        if self._make is None:
            return self._replay
        replay = self._replay_of(self._make(int(random.integers(2**31))))
        if (len(replay.users), replay.resources) != (len(self.users), self.resources):
            raise InputError(
                f"the workload has {len(replay.users)} users, expected {len(self.users)} as at the first call"
            )
        return replay

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Observation, Info]:
        """Begins an episode. Only a workload that is a function of a seed depends on the seed."""
        super().reset(seed=seed)
        self.close()
        self._replay = self._replay_for(self.np_random)
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
        observation = dict(zip(_ARRAYS, arrays, strict=True))
        self._waiting = arrays[0]
        value = float(metrics[self._reward])
        reward = self._metric - value if METRICS[self._reward] else value - self._metric
        self._metric = value
        if is_end:
            self.close()
        return observation, reward, is_end, {"now_s": now, "action_mask": arrays[0].copy(), **metrics}


class SchedulingVectorEnv(gymnasium.vector.VectorEnv[Observation, Any, Any]):
    """Several environments :class:`SchedulingEnv` that take a step together: their simulations run at the same time.

    Observations, rewards and infos are those of `gymnasium.vector.SyncVectorEnv` with such environments, at several times
    the steps a second. An episode that ended begins anew in the next step, whose action does not count.

    >>> import evenhand as eh
    >>> envs = SchedulingVectorEnv(eh.generate(tasks=300, users=5, days=1), 4)
    >>> observations, infos = envs.reset(seed=1)
    >>> observations, rewards, terminated, truncated, infos = envs.step(observations["waiting"].argmax(axis=1))
    >>> rewards.shape, observations["shares"].shape
    ((4,), (4, 5, 2))
    """

    metadata: dict[str, Any] = {"render_modes": [], "autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012

    def __init__(
        self,
        workload: Workload | Callable[[int], Workload],
        num_envs: int,
        *,
        capacity: PoolCapacity = 0.5,
        reward: str = "users_mean_wait_s",
        blocking: bool = True,
    ) -> None:
        if num_envs < 1:
            raise InputError(f"num_envs: found {num_envs}, expected at least 1")
        single = SchedulingEnv(workload, capacity=capacity, reward=reward, blocking=blocking)
        self.num_envs = num_envs
        self._single, self._reward = single, reward
        self.users, self.resources = single.users, single.resources
        self.single_action_space, self.single_observation_space = single.action_space, single.observation_space
        self.action_space = batch_space(single.action_space, num_envs)
        self.observation_space = batch_space(single.observation_space, num_envs)
        self._episodes: list[_native.Episode] = []
        self._randoms = [np.random.default_rng() for _ in range(num_envs)]
        self._arrays: tuple[Any, ...] = ()
        self._now = np.zeros(num_envs)
        self._metrics: dict[str, Any] = {}
        #: Of the last step: whose episode has ended, and whose ended before its first decision.
        self._ended = np.zeros(num_envs, dtype=bool)
        self._undecided = np.zeros(num_envs, dtype=bool)
        self._value = np.zeros(num_envs)

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, Info]:
        """Begins all episodes; environment i has the seed + i. Only a function of a seed depends on seeds."""
        self.close_extras()
        seeds = [seed + i for i in range(self.num_envs)] if isinstance(seed, int) else seed
        for i, one in enumerate(seeds or []):
            if one is not None:
                self._randoms[i], _ = gymnasium.utils.seeding.np_random(one)
        self._episodes = [self._begin(i) for i in range(self.num_envs)]
        self._value = np.zeros(self.num_envs)
        self._ended = np.zeros(self.num_envs, dtype=bool)
        ends, self._now, self._arrays, self._metrics = _native.step_all(self._episodes, [None] * self.num_envs)
        self._undecided = ends
        return self._observation(), self._info()

    def step(self, actions: Any) -> tuple[Observation, Any, Any, Any, Info]:
        """Starts a task of each environment's user, and goes on to the next decision of each."""
        if not self._episodes:
            raise InputError("step: the episodes have not begun, expected a reset")
        actions = np.asarray(actions)
        n = len(self.users)
        if actions.shape != (self.num_envs,) or not np.issubdtype(actions.dtype, np.integer):
            raise InputError(f"step: found actions of shape {actions.shape}, expected {self.num_envs} whole numbers")
        if ((actions < 0) | (actions >= n)).any():
            raise InputError(f"step: found an action outside of the users' numbers, expected them below {n}")
        anew = self._ended
        for i in np.flatnonzero(anew).tolist():
            self._episodes[i] = self._begin(i)
        self._value[anew] = 0.0
        # The waiting user of the action's number, or else the next one by number.
        order = (actions[:, None] + np.arange(n)) % n
        waits = np.take_along_axis(self._arrays[0], order, axis=1)
        users = np.take_along_axis(order, waits.argmax(axis=1)[:, None], axis=1)[:, 0]
        # An episode without a decision is at its end already.
        steps = np.flatnonzero(~self._undecided | anew)
        terminated = self._undecided & ~anew
        if len(steps) == self.num_envs:
            decisions = [None if new else user for new, user in zip(anew.tolist(), users.tolist(), strict=True)]
            ends, self._now, self._arrays, self._metrics = _native.step_all(self._episodes, decisions)
        else:
            ends = self._step_some(steps, anew, users)
        terminated |= ends & ~anew
        self._undecided = ends & anew
        value = self._metrics[self._reward]
        sign = -1.0 if METRICS[self._reward] else 1.0
        # What started without a choice, before the first decision, counts for the first step.
        rewards = np.where(anew, 0.0, sign * (value - self._value))
        self._value = np.where(anew, 0.0, value)
        self._ended = terminated
        return self._observation(), rewards, terminated, np.zeros(self.num_envs, dtype=bool), self._info()

    def close_extras(self, **kwargs: Any) -> None:
        """Ends the episodes."""
        for episode in self._episodes:
            episode.close()
        self._episodes = []

    def _begin(self, i: int) -> _native.Episode:
        if self._episodes:
            self._episodes[i].close()
        return self._single._replay_for(self._randoms[i]).begin()

    def _step_some(self, steps: Any, anew: Any, users: Any) -> Any:
        """Takes a step of some environments; the others stay as they are. Returns whose episode ended by it."""
        ends = np.zeros(self.num_envs, dtype=bool)
        if len(steps) == 0:
            return ends
        episodes = [self._episodes[i] for i in steps]
        decisions = [None if anew[i] else int(users[i]) for i in steps]
        ends[steps], now, arrays, metrics = _native.step_all(episodes, decisions)
        self._now = _with(self._now, steps, now)
        self._arrays = tuple(_with(old, steps, new) for old, new in zip(self._arrays, arrays, strict=True))
        self._metrics = {name: _with(old, steps, metrics[name]) for name, old in self._metrics.items()}
        return ends

    def _observation(self) -> Observation:
        return dict(zip(_ARRAYS, self._arrays, strict=True))

    def _info(self) -> Info:
        """The metrics by name, and for each of them who has it: all."""
        info: Info = {"now_s": self._now, "action_mask": self._arrays[0].copy(), **self._metrics}
        return {**info, **{f"_{name}": np.ones(self.num_envs, dtype=bool) for name in info}}


def _with(old: Any, rows: Any, new: Any) -> Any:
    """A copy with other rows."""
    copy = old.copy()
    copy[rows] = new
    return copy


def _replay_of(workload: Workload, capacity: PoolCapacity, blocking: bool) -> _native.Replay:
    amounts: list[tuple[str, str]] = []
    factor = None
    if isinstance(capacity, Mapping):
        amounts = [(name, str(amount)) for name, amount in capacity.items()]
    else:
        factor = str(capacity)
    return _native.Replay(workload._store_path(), factor, amounts, blocking)
