#!/usr/bin/env python3
"""The ring of benches/dispatch.rs (8 clients, 4 resources, quanta of 0.1 s) in SimPy, to say what a general simulator does.

Clients are served first come, first served, or by least use so far (a priority looked up when a request is made). No window, no
bottlenecks, no entitlement: less work than the algorithm of paper 000. `pip install simpy`, then run it; medians of five.
"""

import statistics
import time

import simpy


def run(by_use, horizon, clients=8, resources=4):
    environment = simpy.Environment()
    kind = simpy.PriorityResource if by_use else simpy.Resource
    all_resources = [kind(environment, capacity=1) for _ in range(resources)]
    dispatches = [0]

    def client(first):
        used = 0.0
        step = 0
        while True:
            resource = all_resources[(first + step % 3) % resources]
            with resource.request(priority=used) if by_use else resource.request() as request:
                yield request
                dispatches[0] += 1
                yield environment.timeout(0.1)
            used += 0.1
            step += 1

    for i in range(clients):
        environment.process(client(i * resources // clients))
    begun = time.perf_counter()
    environment.run(until=horizon)
    return dispatches[0] / (time.perf_counter() - begun)


for name, by_use in [("first come, first served", False), ("least use first", True)]:
    rates = [run(by_use, 2000) for _ in range(5)]
    print(f"SimPy {simpy.__version__}, {name}: {statistics.median(rates) / 1e6:.3f} million dispatches/s")
