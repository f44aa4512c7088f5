"""The three carriers of a call: where its record is, and how a question gets to the client."""
import base64

from .svg import Picture


def draw():
    picture = Picture(
        960, 420, "The three carriers of a call",
        "Sealed, for a request of 2026-07-28: the question and the sealed record go to the client, the handler is dropped, and any "
        "instance runs it again with the answer. Pushed, for a session of 2025: the question is a request of the server, and the "
        "handler waits. Task, with the extension: the question waits in the task, and the record is in the task's store.",
    )
    panels = [
        ("sealed", "a request of 2026-07-28", "instances", [
            (1, "tools/call"), (-1, "question, sealed record"), (0, "the handler is dropped"),
            (1, "the call, answer, record"), (0, "the handler runs again"), (-1, "result"),
        ], ("record: in requestState,", "so any instance can go on")),
        ("pushed", "a session of 2025", "one instance", [
            (1, "tools/call"), (-1, "question, as a request"), (0, "the handler waits"),
            (1, "answer"), (0, "the handler goes on"), (-1, "result"),
        ], ("record: in memory,", "on the session's instance")),
        ("task", "the extension for tasks", "instances", [
            (1, "tools/call"), (-1, "a task"), (1, "tasks/get"), (-1, "question"),
            (1, "tasks/update: answer"), (1, "tasks/get"), (-1, "result"),
        ], ("record: in the tasks' store;", "any process can go on")),
    ]
    for number, (name, when, server, messages, record) in enumerate(panels):
        left = 16 + 312 * number
        picture.rect(left, 16, 304, 388, "box", 6)
        picture.text(left + 152, 42, name, "text strong", "middle")
        picture.text(left + 152, 61, when, "muted small", "middle")
        client, other = left + 40, left + 264
        picture.text(client, 88, "client", "text small", "middle")
        picture.text(other - 8, 88, server, "text small", "middle")
        picture.line(client, 96, client, 344, "life")
        picture.line(other, 96, other, 344, "life")
        step = 240 / len(messages)
        for position, (way, text) in enumerate(messages):
            y = 96 + step * (position + 0.72)
            if way == 0:
                picture.text(other - 8, y - 2, text, "muted small", "end")
                picture.add(f'<circle class="head" cx="{other}" cy="{y - 6:g}" r="4"/>')
                continue
            start, end = (client, other) if way > 0 else (other, client)
            picture.arrow(start, end, y)
            picture.text((client + other) / 2, y - 7, text, "text small", "middle")
        picture.text(left + 152, 370, record[0], "text small strong", "middle")
        picture.text(left + 152, 388, record[1], "text small", "middle")
    return picture.render()


def link_definition(name, svg):
    """Returns a Markdown link definition that holds the whole picture.

    A chapter of the guide refers to its picture by name, and defines the name as a file of the repository: GitHub shows the
    file. rustdoc reads this definition first, and the first one counts: docs.rs shows the picture without another request.
    """
    return f"[{name}]: data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}\n"
