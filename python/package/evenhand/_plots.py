"""Figures of a study by matplotlib, which is not a dependency."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ._study import Study

#: Colours that can be told apart by everybody, and read on white and on black (Okabe and Ito 2008).
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00")
#: Text and lines between white and black.
_GREY = "#808080"


class Plots:
    """Figures of a study. Each function draws into `ax`, or makes a figure, and returns the axes."""

    def __init__(self, study: Study) -> None:
        self._study = study

    def waits(self, capacity: str | float | None = None, ax: Axes | None = None) -> Axes:
        """The users' mean waits under each policy, from the shortest to the longest."""
        ax = ax or _axes()
        waits_of = {
            run["id"]: sorted(user["mean_wait_s"] for user in run["users"] if user["mean_wait_s"] is not None)
            for run in self._runs(capacity)
        }
        unit, unit_s = _unit_of(max((waits[-1] for waits in waits_of.values() if waits), default=0.0))
        for (run, waits), colour in zip(waits_of.items(), _cycle(), strict=False):
            share = [100 * (i + 1) / len(waits) for i in range(len(waits))]
            ax.step(share, [wait / unit_s for wait in waits], where="post", color=colour, label=run)
        ax.set_xlabel("users, from the shortest wait to the longest (%)")
        ax.set_ylabel(f"mean wait ({unit})")
        return _finish(ax)

    def utilization(self, capacity: str | float | None = None, ax: Axes | None = None) -> Axes:
        """The part of the capacity in use, by policy and resource."""
        ax = ax or _axes()
        runs = self._runs(capacity)
        resources = list(dict.fromkeys(resource for run in runs for resource in run["utilization"]))
        width = 0.8 / max(1, len(runs))
        for i, (run, colour) in enumerate(zip(runs, _cycle(), strict=False)):
            heights = [100 * run["utilization"].get(resource, 0.0) for resource in resources]
            ax.bar([x + i * width for x in range(len(resources))], heights, width, color=colour, label=run["id"])
        ax.set_xticks([x + width * (len(runs) - 1) / 2 for x in range(len(resources))], resources)
        ax.set_ylabel("in use (% of the capacity)")
        return _finish(ax)

    def _runs(self, capacity: str | float | None) -> list[dict[str, Any]]:
        runs: list[dict[str, Any]] = self._study.summary["runs"]
        if capacity is None:
            return runs
        found = [run for run in runs if run["capacity_name"] == str(capacity)]
        if not found:
            known = ", ".join(dict.fromkeys(run["capacity_name"] for run in runs))
            raise InputError(f"capacity: found {capacity}, expected one of: {known}")
        return found


def _unit_of(longest_s: float) -> tuple[str, float]:
    """The unit of an axis that reaches up to this, with its seconds: the largest of which there are at least two."""
    for unit, unit_s in (("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0)):
        if longest_s >= 2 * unit_s:
            return unit, unit_s
    return "seconds", 1.0


def _cycle() -> list[str]:
    return list(_COLOURS) * 20


def _axes() -> Axes:
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise InputError("figures are drawn by matplotlib, which is not installed: pip install matplotlib") from error
    figure, ax = pyplot.subplots(layout="constrained")
    figure.patch.set_alpha(0)
    return ax


def _finish(ax: Axes) -> Axes:
    """Makes axes that read well on a light page and on a dark one."""
    ax.set_facecolor("none")
    for side, spine in ax.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(_GREY)
    ax.tick_params(colors=_GREY)
    ax.xaxis.label.set_color(_GREY)
    ax.yaxis.label.set_color(_GREY)
    ax.legend(frameon=False, labelcolor=_GREY)
    return ax
