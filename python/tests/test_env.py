"""The environment for learning."""

from __future__ import annotations

import functools
import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest
from evenhand.env import METRICS, SchedulingEnv, SchedulingVectorEnv
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


def generated(seed: int) -> eh.Workload:
    """Some of them without any decision."""
    return eh.generate(tasks=30 if seed % 2 else 4, users=4, days=1 if seed % 2 else 9, seed=seed)


@pytest.mark.parametrize("reward", ["users_mean_wait_s", "jain_wait"])
@pytest.mark.parametrize("source", ["one workload", "a workload of a seed"])
def test_a_vector_of_environments_is_gymnasium_s_vector_of_them(source: str, reward: str) -> None:
    workload: Any = eh.generate(tasks=60, users=4, days=1, seed=8) if source == "one workload" else generated
    make = functools.partial(SchedulingEnv, workload, capacity=0.4, reward=reward)
    theirs = gymnasium.vector.SyncVectorEnv([make] * 3)
    ours = SchedulingVectorEnv(workload, 3, capacity=0.4, reward=reward)
    assert ours.observation_space == theirs.observation_space and ours.action_space == theirs.action_space
    ended = 0

    def same(a: dict[str, Any], b: dict[str, Any], names: Any) -> None:
        for name in names:
            np.testing.assert_array_equal(a[name], b[name], err_msg=name)

    (expected, their_info), (found, our_info) = theirs.reset(seed=3), ours.reset(seed=3)
    random = np.random.default_rng(1)
    for _ in range(150):
        same(expected, found, expected)
        same(their_info, our_info, ["now_s", *METRICS])
        actions = random.integers(4, size=3)
        expected, rewards, terminated, truncated, their_info = theirs.step(actions)
        found, our_rewards, our_terminated, our_truncated, our_info = ours.step(actions)
        np.testing.assert_allclose(our_rewards, rewards, rtol=1e-12, atol=1e-9)
        np.testing.assert_array_equal(our_terminated, terminated)
        np.testing.assert_array_equal(our_truncated, truncated)
        ended += int(terminated.sum())
    assert ended >= 3
    ours.close()


def test_wrong_actions_of_a_vector_are_refused(small: eh.Workload) -> None:
    envs = SchedulingVectorEnv(small, 2)
    with pytest.raises(eh.InputError, match="the episodes have not begun, expected a reset"):
        envs.step(np.zeros(2, dtype=int))
    envs.reset()
    for actions, sentence in [
        (np.zeros(3, dtype=int), r"found actions of shape \(3,\), expected 2 whole numbers"),
        (np.zeros(2), "expected 2 whole numbers"),
        (np.array([0, 6]), "outside of the users' numbers, expected them below 6"),
        (np.array([-1, 0]), "outside of the users' numbers"),
    ]:
        with pytest.raises(eh.InputError, match=sentence):
            envs.step(actions)
    envs.step(np.array([0, 5]))
    with pytest.raises(eh.InputError, match="num_envs: found 0, expected at least 1"):
        SchedulingVectorEnv(small, 0)
