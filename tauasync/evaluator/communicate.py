"""COMMUNICATE: did each piece of information reach the user in one agent message?"""

from __future__ import annotations

from tauasync.evaluator.verdict import CommunicateCheck
from tauasync.types import Message, Transcript


def check_communicate(
    infos: tuple[str, ...], transcript: Transcript
) -> tuple[CommunicateCheck, ...]:
    """Look for each string, ignoring case and the thousands commas of the message.

    Any agent text counts, the greeting and text beside tool calls included. An `info` that
    itself holds a comma can never be found (the benchmark's rule).
    """
    said = [
        item.content.lower().replace(",", "")
        for item in transcript
        if isinstance(item, Message) and item.role == "assistant" and item.content
    ]
    return tuple(
        CommunicateCheck(info=info, met=any(info.lower() in text for text in said))
        for info in infos
    )
