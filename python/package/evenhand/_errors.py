"""Exceptions: the sentences are those of the program."""

from __future__ import annotations


class EvenhandError(Exception):
    """Base class of the package's exceptions."""


class InputError(EvenhandError, ValueError):
    """The input is invalid, or a file that it names does not exist, where the program has exit status 2.

    >>> import evenhand as eh
    >>> eh.study(policies=["fifo", "dfr"])
    Traceback (most recent call last):
      ...
    evenhand.InputError: --policy: found "dfr", expected one of: ...did you mean "drf"?
    """


class EnvironmentFailure(EvenhandError, RuntimeError):
    """A file that exists cannot be read, or a file cannot be written, or the environment failed otherwise: exit status 3 of the program."""


class PolicyError(EvenhandError, RuntimeError):
    """A policy written in Python raised an exception, which is the cause, or returned what is no decision."""


for _class in (EvenhandError, InputError, EnvironmentFailure, PolicyError):
    _class.__module__ = "evenhand"
