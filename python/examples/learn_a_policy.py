"""Learns a small scheduling policy, and compares it with drf and fair-tree on workloads that it has not seen.

    python learn_a_policy.py [--generations 12] [--tests 10]

The policy gives every waiting user a score, a weighted sum of four features of the observation; the lowest score starts.
The cross-entropy method finds the weights: it draws candidates, keeps those with the best rewards on generated workloads,
and draws the next ones around them. NumPy is enough.

Prints the learned weights, and for each policy the mean of the users' mean waits with its 95 % confidence interval over
the test workloads. All policies replay the same ones.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from evenhand.env import SchedulingEnv

import evenhand as eh

FEATURES = ("dominant share", "dominant demand", "age", "mean wait")
CAPACITY = 0.6
HOUR_S = 3600.0


def workload(seed: int) -> eh.Workload:
    """A small site with full queues; training has seeds below 1000, tests from 1000 on."""
    return eh.generate("google2011", tasks=600, users=8, days=1, seed=seed)


def features(observation: dict[str, Any]) -> Any:
    """One row for each user; all features are of the order of 1."""
    columns = (
        observation["shares"].max(axis=1),
        observation["demand"].max(axis=1),
        np.log1p(observation["age_s"] / HOUR_S),
        np.log1p(observation["mean_wait_s"] / HOUR_S),
    )
    return np.stack(columns, axis=1)


def decide(weights: Any, observation: dict[str, Any]) -> int:
    """The waiting user with the lowest score."""
    scores = np.where(observation["waiting"] == 1, features(observation) @ weights, np.inf)
    return int(scores.argmin())


def episode(env: SchedulingEnv, weights: Any) -> float:
    """Returns the mean of the users' mean waits, in hours."""
    observation, _ = env.reset()
    terminated, reward = False, 0.0
    while not terminated:
        observation, step, terminated, _, _ = env.step(decide(weights, observation))
        reward += step
    return -reward / HOUR_S


def learn(generations: int, random: np.random.Generator) -> Any:
    """Returns the weights that the cross-entropy method ends with."""
    candidates, kept = 16, 4
    envs = [SchedulingEnv(workload(seed), capacity=CAPACITY) for seed in range(3)]
    mean, spread = np.zeros(len(FEATURES)), np.ones(len(FEATURES))
    for generation in range(generations):
        drawn = mean + spread * random.standard_normal((candidates, len(FEATURES)))
        waits = np.array([np.mean([episode(env, weights) for env in envs]) for weights in drawn])
        best = drawn[np.argsort(waits)[:kept]]
        mean, spread = best.mean(axis=0), best.std(axis=0) + 0.02
        print(f"generation {generation + 1}: {np.sort(waits)[:kept].mean():.3f} h")
    return mean


def interval(values: list[float]) -> str:
    """A mean with its 95 % confidence interval, by resampling."""
    random = np.random.default_rng(0)
    means = random.choice(values, (2000, len(values))).mean(axis=1)
    low, high = np.percentile(means, [2.5, 97.5])
    return f"{np.mean(values):.3f} h  [{low:.3f}, {high:.3f}]"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--generations", type=int, default=12)
    parser.add_argument("--tests", type=int, default=10)
    arguments = parser.parse_args()
    weights = learn(arguments.generations, np.random.default_rng(1))
    for name, weight in zip(FEATURES, weights, strict=True):
        print(f"weight of {name}: {weight:+.2f}")
    waits: dict[str, list[float]] = {"drf": [], "fair-tree": [], "learned": []}
    for seed in range(1000, 1000 + arguments.tests):
        tasks = workload(seed)
        study = eh.study(tasks, policies=["drf", "fair-tree"], capacity=CAPACITY, tasks=False)
        for run in study.summary["runs"]:
            waits[run["policy"]].append(run["users_mean_wait_s"] / HOUR_S)
        waits["learned"].append(episode(SchedulingEnv(tasks, capacity=CAPACITY), weights))
    for policy, values in waits.items():
        print(f"{policy:10} {interval(values)}")


if __name__ == "__main__":
    main()
