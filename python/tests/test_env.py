"""The environment for learning."""

from __future__ import annotations

import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest
from evenhand.env import METRICS, SchedulingEnv
from gymnasium.utils.env_checker import check_env

import evenhand as eh


@pytest.fixture(scope="module")
def small() -> eh.Workload:
    return eh.generate(tasks=600, users=6, days=1, seed=2)


def drf(observation: dict[str, Any]) -> int:
    """The user of those who wait whose dominant share is lowest; ties to the older task."""
    waiting = np.flatnonzero(observation["waiting"])
    key = observation["shares"][waiting].max(axis=1)
    tied = waiting[key <= key.min() * (1 + 1e-14)]
    order = np.lexsort((tied, -observation["age_s"][tied]))
    return int(tied[order[0]])


def episode(env: SchedulingEnv, act: Any, seed: int = 1) -> tuple[list[Any], float, dict[str, Any]]:
    observation, info = env.reset(seed=seed)
    trace, total, terminated = [observation], 0.0, False
    while not terminated:
        observation, reward, terminated, truncated, info = env.step(act(observation))
        assert not truncated
        trace.append(observation)
        total += reward
    return trace, total, info


def test_gymnasium_accepts_the_environment(small: eh.Workload) -> None:
    with warnings.catch_warnings():
        # Advice about the range of a space, which times do not have.
        warnings.simplefilter("ignore")
        check_env(SchedulingEnv(small), skip_render_check=True)
        check_env(SchedulingEnv(lambda seed: eh.generate(tasks=300, users=5, days=1, seed=seed)), skip_render_check=True)


@pytest.mark.parametrize("blocking", [True, False])
def test_an_episode_of_drf_is_the_study_s_run_of_drf(small: eh.Workload, blocking: bool) -> None:
    study = eh.study(small, policies=["drf"], capacity=0.4, no_blocking=not blocking)
    run = study.summary["runs"][0]
    for metric in METRICS:
        env = SchedulingEnv(small, capacity=0.4, reward=metric, blocking=blocking)
        _, total, info = episode(env, drf)
        assert info["started"] == run["totals"]["started"]
        for name in ("mean_wait_s", "users_mean_wait_s", "jain_wait"):
            assert info[name] == pytest.approx(run[name], rel=1e-9), name
        sign = -1 if METRICS[metric] else 1
        assert total == pytest.approx(sign * info[metric], rel=1e-6)
    slowdowns = [user["mean_bounded_slowdown"] * user["started"] for user in run["users"]]
    assert info["mean_bounded_slowdown"] == pytest.approx(sum(slowdowns) / info["started"], rel=1e-9)


def test_episodes_with_the_same_actions_are_the_same(small: eh.Workload) -> None:
    traces = []
    for _ in range(2):
        random = np.random.default_rng(5)
        env = SchedulingEnv(small, capacity=0.4)
        traces.append(episode(env, lambda _, random=random: int(random.integers(6))))
    (first, total, info), (second, again, same) = traces
    assert total == again and len(first) == len(second) > 50
    for a, b in zip(first, second, strict=True):
        assert all(np.array_equal(a[name], b[name]) for name in a)
    assert all(np.array_equal(info[name], same[name]) for name in info)


def test_another_seed_is_another_workload() -> None:
    env = SchedulingEnv(lambda seed: eh.generate(tasks=200, users=5, days=1, seed=seed), capacity=0.4)
    lengths = [len(episode(env, drf, seed)[0]) for seed in (1, 2, 1)]
    assert lengths[0] == lengths[2] != lengths[1]


def test_observations_are_in_their_space(small: eh.Workload) -> None:
    env = SchedulingEnv(small, capacity=0.4)
    trace, _, _ = episode(env, drf)
    assert all(env.observation_space.contains(observation) for observation in trace)
    assert max(observation["queued"].max() for observation in trace) > 1
    last = trace[-1]
    assert last["queued"].sum() == last["waiting"].sum() == 0
    assert last["free"] == pytest.approx(1.0)


def test_an_episode_without_decisions_has_one_step() -> None:
    env = SchedulingEnv(eh.generate(tasks=5, users=2, days=9), capacity={"cpu": 100, "mem": 100})
    trace, total, info = episode(env, lambda _: 0)
    assert (len(trace), total, info["started"]) == (2, 0.0, 5)


def test_environments_run_side_by_side(small: eh.Workload) -> None:
    envs = gymnasium.vector.SyncVectorEnv([lambda: SchedulingEnv(small, capacity=0.4) for _ in range(3)])
    observations, _ = envs.reset(seed=1)
    assert observations["shares"].shape == (3, 6, 2)
    for _ in range(20):
        observations, rewards, *_ = envs.step(envs.action_space.sample())
    assert rewards.shape == (3,)
    envs.close()


def test_invalid_uses_are_refused(small: eh.Workload) -> None:
    with pytest.raises(eh.InputError, match="reward: found 'speed', expected one of: mean_wait_s"):
        SchedulingEnv(small, reward="speed")
    with pytest.raises(eh.InputError, match="capacity: "):
        SchedulingEnv(small, capacity={"cpu": 1})
    with pytest.raises(eh.InputError, match="capacity: "):
        SchedulingEnv(small, capacity=0)
    env = SchedulingEnv(small)
    with pytest.raises(eh.InputError, match="expected a reset"):
        env.step(0)
    env.reset()
    with pytest.raises(eh.InputError, match="found action 6, expected a user's number below 6"):
        env.step(6)
    # An episode that is left is no problem for the next one.
    env.reset()
    env.close()
