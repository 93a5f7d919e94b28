"""A scripted model server that speaks the OpenAI HTTP API (chat completions, responses, models), for the real CLI.

It keeps no state: the scenario and the step follow from the conversation in the request. The last user message that
holds `@@script NAME` picks the scenario; the answers the model has given since then are the turns already played.
"""

from __future__ import annotations

import json
import re
import socket
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.real.scripts import SCENARIOS, WORKING_DIRECTORY, Call, Fail, Say, Turn

MODEL = "scripted-model"
ANSWER_DELAY_SECONDS = 0.03
CHUNK_CHARACTERS = 2000
OVER = (Say("The script is over."),)
NO_SCRIPT = (Say("A title"),)
CHAT_USAGE = {
    "prompt_tokens": 900,
    "completion_tokens": 60,
    "total_tokens": 960,
    "prompt_tokens_details": {"cached_tokens": 300},
    "completion_tokens_details": {"reasoning_tokens": 5},
}
RESPONSES_USAGE = {
    "input_tokens": 900,
    "output_tokens": 60,
    "total_tokens": 960,
    "input_tokens_details": {"cached_tokens": 300},
    "output_tokens_details": {"reasoning_tokens": 5},
}


class Model:
    """Serves on a listening socket in threads until closed; a context manager."""

    def __init__(self, listener: socket.socket) -> None:
        self.port: int = listener.getsockname()[1]
        self._server = serve(listener, _Handler)

    def __enter__(self) -> Model:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def serve(listener: socket.socket, handler: type[BaseHTTPRequestHandler]) -> ThreadingHTTPServer:
    """An HTTP server on a socket that listens already, in a thread of its own."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler, bind_and_activate=False)
    server.socket.close()
    server.socket = listener
    server.daemon_threads = True
    server.block_on_close = False
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True).start()
    return server


def next_turn(messages: Sequence[dict[str, Any]], *, has_tools: bool) -> Turn:
    """What the model says to this conversation. Without tools it is a helper (title, summary) that asks."""
    start, name = -1, ""
    directory = "."
    for index, message in enumerate(messages):
        if message.get("role") != "user":
            continue
        text = plain_text(message.get("content"))
        if picked := re.findall(r"@@script (\w+)", text):
            start, name = index, picked[-1]
        if named := re.search(r"cwd=(\S+)", text):
            directory = named[1]
    if not has_tools or name not in SCENARIOS:
        return NO_SCRIPT
    played = sum(message.get("role") == "assistant" for message in messages[start + 1 :])
    turns = SCENARIOS[name]
    turn = turns[played] if played < len(turns) else OVER
    return tuple(_placed(step, directory) if isinstance(step, Call) else step for step in turn)


def plain_text(content: object) -> str:
    """The text of a message's content, in whichever of the API's shapes it comes."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(plain_text(part) for part in content)
    if isinstance(content, dict):
        return str(content.get("text") or plain_text(content.get("content")))
    return ""


def chat_chunks(turn: Turn, model: str) -> Iterator[dict[str, Any]]:
    """A streamed chat completion."""
    base = {"id": f"chat-{uuid.uuid4().hex}", "object": "chat.completion.chunk", "created": 0, "model": model}

    def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        return {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    yield chunk({"role": "assistant", "content": ""})
    for step in turn:
        if isinstance(step, Say):
            yield from (chunk({"reasoning_content": piece}) for piece in pieces(step.reasoning))
            yield from (chunk({"content": piece}) for piece in pieces(step.text))
    for index, call in enumerate(_tool_calls(turn)):
        arguments = call["function"]["arguments"]
        yield chunk({"tool_calls": [{**call, "index": index, "function": {**call["function"], "arguments": ""}}]})
        yield chunk({"tool_calls": [{"index": index, "function": {"arguments": arguments}}]})
    yield chunk({}, _finish_reason(turn))
    yield {**base, "choices": [], "usage": CHAT_USAGE}


def chat_answer(turn: Turn, model: str) -> dict[str, Any]:
    """A chat completion in one piece."""
    message: dict[str, Any] = {"role": "assistant", "content": _text(turn) or None}
    if calls := _tool_calls(turn):
        message["tool_calls"] = calls
    choice = {"index": 0, "message": message, "finish_reason": _finish_reason(turn)}
    identity = {"id": f"chat-{uuid.uuid4().hex}", "object": "chat.completion", "created": 0, "model": model}
    return {**identity, "choices": [choice], "usage": CHAT_USAGE}


def responses_answer(turn: Turn, model: str) -> dict[str, Any]:
    """An answer of the responses API in one piece."""
    identity = {"id": f"resp_{uuid.uuid4().hex}", "object": "response", "created_at": 0, "model": model}
    return {**identity, "status": "completed", "output": [_item(step) for step in turn], "usage": RESPONSES_USAGE}


def responses_chunks(turn: Turn, model: str) -> Iterator[dict[str, Any]]:
    """A streamed answer of the responses API."""
    whole = responses_answer(turn, model)
    yield {"type": "response.created", "response": {**whole, "status": "in_progress", "output": [], "usage": None}}
    for index, item in enumerate(whole["output"]):
        place = {"output_index": index, "item_id": item["id"]}
        empty: dict[str, Any] = {"content": []} if item["type"] == "message" else {"arguments": ""}
        opened = {**item, **empty, "status": "in_progress"}
        yield {"type": "response.output_item.added", "output_index": index, "item": opened}
        if item["type"] == "message":
            part = item["content"][0]
            inside = {**place, "content_index": 0}
            yield {"type": "response.content_part.added", **inside, "part": {**part, "text": ""}}
            for piece in pieces(part["text"]):
                yield {"type": "response.output_text.delta", **inside, "delta": piece}
            yield {"type": "response.output_text.done", **inside, "text": part["text"]}
            yield {"type": "response.content_part.done", **inside, "part": part}
        else:
            yield {"type": "response.function_call_arguments.delta", **place, "delta": item["arguments"]}
            yield {"type": "response.function_call_arguments.done", **place, "arguments": item["arguments"]}
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    yield {"type": "response.completed", "response": whole}


def responses_messages(items: object) -> list[dict[str, Any]]:
    """The responses API's input as chat messages; calls made together are one assistant message."""
    if isinstance(items, str):
        return [{"role": "user", "content": items}]
    messages: list[dict[str, Any]] = []
    previous = ""
    for item in items if isinstance(items, list) else []:
        kind = item.get("type", "message")
        if kind == "message":
            messages.append(item)
        elif kind == "function_call" and previous != kind:
            messages.append({"role": "assistant"})
        previous = kind
    return messages


def pieces(text: str) -> list[str]:
    """The text as a model streams it: words, or big pieces when it is long."""
    if len(text) > CHUNK_CHARACTERS:
        return [text[start : start + CHUNK_CHARACTERS] for start in range(0, len(text), CHUNK_CHARACTERS)]
    return re.findall(r"\s*\S+|\s+", text)


def _placed(call: Call, directory: str) -> Call:
    arguments = {
        name: value.replace(WORKING_DIRECTORY, directory) if isinstance(value, str) else value
        for name, value in call.arguments.items()
    }
    return Call(call.tool, arguments)


def _text(turn: Turn) -> str:
    return "".join(step.text for step in turn if isinstance(step, Say))


def _tool_calls(turn: Turn) -> list[dict[str, Any]]:
    return [
        {
            "id": f"call_{uuid.uuid4().hex[:20]}",
            "type": "function",
            "function": {"name": step.tool, "arguments": json.dumps(step.arguments)},
        }
        for step in turn
        if isinstance(step, Call)
    ]


def _finish_reason(turn: Turn) -> str:
    return "tool_calls" if any(isinstance(step, Call) for step in turn) else "stop"


def _item(step: Say | Call | Fail) -> dict[str, Any]:
    name = uuid.uuid4().hex[:20]
    if isinstance(step, Call):
        call = {"name": step.tool, "arguments": json.dumps(step.arguments), "call_id": f"call_{name}"}
        return {"type": "function_call", "id": f"fc_{name}", "status": "completed", **call}
    text = step.text if isinstance(step, Say) else ""
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "id": f"msg_{name}", "status": "completed", "role": "assistant", "content": content}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        model = {"id": MODEL, "object": "model", "created": 0, "owned_by": "nobody"}
        self._answer(200, {"object": "list", "data": [model]})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)))
        responses = self.path.partition("?")[0].endswith("/responses")
        messages = responses_messages(body.get("input")) if responses else body.get("messages", [])
        turn = next_turn(messages, has_tools=bool(body.get("tools")))
        if isinstance(turn[0], Fail):
            self._answer(turn[0].status, {"error": {"message": "scripted failure", "type": "scripted", "code": "x"}})
            return
        time.sleep(ANSWER_DELAY_SECONDS)
        model = str(body.get("model"))
        if not body.get("stream"):
            self._answer(200, responses_answer(turn, model) if responses else chat_answer(turn, model))
        elif responses:
            self._stream(({"sequence_number": n, **e} for n, e in enumerate(responses_chunks(turn, model))), named=True)
        else:
            self._stream(chat_chunks(turn, model), named=False)

    def _answer(self, status: int, document: dict[str, Any]) -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _stream(self, events: Iterator[dict[str, Any]], *, named: bool) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for event in events:
            self._write_chunk((f"event: {event['type']}\n" if named else "") + f"data: {json.dumps(event)}\n\n")
        if not named:
            self._write_chunk("data: [DONE]\n\n")
        self.wfile.write(b"0\r\n\r\n")

    def _write_chunk(self, text: str) -> None:
        data = text.encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
