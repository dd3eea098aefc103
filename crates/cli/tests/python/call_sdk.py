"""Calls functions of the official SDK for the tests: a line of JSON for each call, and one for each answer."""

import dataclasses
import json
import logging
import sys

import claude_agent_sdk
from claude_agent_sdk._internal.transport import subprocess_cli


def plain(value):
    """What JSON can say of a value."""
    if isinstance(value, list):
        return [plain(item) for item in value]
    return dataclasses.asdict(value) if dataclasses.is_dataclass(value) else value


def version_warnings(line):
    """What the SDK warns about when it reads this line of an engine, by its own check of the version."""
    warnings = []
    handler = logging.Handler()
    handler.emit = lambda record: warnings.append(record.getMessage())
    subprocess_cli.logger.addHandler(handler)
    options = claude_agent_sdk.ClaudeAgentOptions(verbatim_prompts=True)
    subprocess_cli.SubprocessCLITransport("", options)._check_claude_version(line)
    subprocess_cli.logger.removeHandler(handler)
    return warnings


def answer(call):
    """The outcome of a call."""
    try:
        own = {"version_warnings": version_warnings}
        function = own.get(call["function"]) or getattr(claude_agent_sdk, call["function"])
        return {"value": plain(function(**call["arguments"]))}
    except Exception as error:  # Whatever goes wrong, the test is to see it.
        return {"error": f"{type(error).__name__}: {error}"}


for line in sys.stdin:
    print(json.dumps(answer(json.loads(line))), flush=True)
