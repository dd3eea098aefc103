"""Calls functions of the official SDK for the tests: a line of JSON for each call, and one for each answer."""

import dataclasses
import json
import sys

import claude_agent_sdk


def plain(value):
    """What JSON can say of a value."""
    if isinstance(value, list):
        return [plain(item) for item in value]
    return dataclasses.asdict(value) if dataclasses.is_dataclass(value) else value


def answer(call):
    """The outcome of a call."""
    try:
        function = getattr(claude_agent_sdk, call["function"])
        return {"value": plain(function(**call["arguments"]))}
    except Exception as error:  # Whatever goes wrong, the test is to see it.
        return {"error": f"{type(error).__name__}: {error}"}


for line in sys.stdin:
    print(json.dumps(answer(json.loads(line))), flush=True)
