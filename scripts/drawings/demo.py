"""The demo in a terminal: its recording, and the picture of the recording.

A recording is a file of asciinema's format, version 2: a header, then one line for each piece of output, with its time.
"""
import codecs
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import termios
import time
from xml.sax.saxutils import escape

from .svg import MONO

COLUMNS, ROWS = 112, 24
CELL, LINE = 7.8, 19
# The seconds for which the last screen is shown before the replay.
POSTER = 4
# The demo of README with its answer, then without: the person reads, types, presses Enter, and sends the answer.
SESSION = [
    (["demo", "--answer", "region.region=eu-west-1"], []),
    (["demo"], [("Region:", "eu-west-1\r"), ("And now?", "\r")]),
]
ESCAPE = re.compile(r"\x1b(?:\[([?\d;]*)([A-Za-z])|[()].|.)")
# The beginning of a sequence whose end is in the next piece of output.
CUT_ESCAPE = re.compile(r"\x1b(?:\[[?\d;]*|[()])?\Z")
COLOURS = {91: "red", 92: "green", 93: "yellow", 96: "cyan"}


def record(program):
    """Runs the demo of `program` in a terminal, and returns the recording."""
    events, now = [], 0.3
    for arguments, keys in SESSION:
        events.append([now, "o", f"$ antiphon {' '.join(arguments)}\r\n"])
        now = play(program, arguments, keys, events, now + 0.4) + 1.6
    header = {"version": 2, "width": COLUMNS, "height": ROWS, "title": "antiphon demo"}
    lines = [header] + [[round(at, 2), kind, text] for at, kind, text in events]
    return "".join(json.dumps(line) + "\n" for line in lines)


def play(program, arguments, keys, events, begin):
    """Runs one command, and returns the time of its end.

    `keys` has pairs: a text of a prompt, and the keys that are pressed once the text is printed, one after the other, each
    when nothing more is printed.
    """
    child, terminal = pty.fork()
    if child == 0:
        os.environ["TERM"] = "xterm-256color"
        os.execv(program, ["antiphon", *arguments])
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    started, quiet, now = time.monotonic(), 1.5, begin
    keys, printed, pressed = list(keys), "", ""
    decoder = codecs.getincrementaldecoder("utf-8")()
    while True:
        if select.select([terminal], [], [], quiet)[0]:
            try:
                data = os.read(terminal, 65536)
            except OSError:
                break
            if not data:
                break
            now = begin + time.monotonic() - started
            events.append([now, "o", decoder.decode(data)])
            printed += events[-1][2]
        elif pressed:
            os.write(terminal, pressed[0].encode())
            pressed = pressed[1:]
            quiet = 1.2 if pressed in ("", "\r") else 0.12
        elif keys and keys[0][0] in printed:
            pressed, printed = keys.pop(0)[1], ""
        elif time.monotonic() - started > 30:
            os.kill(child, signal.SIGKILL)
            raise TimeoutError(f"the demo does not end; it printed, since the last key: {printed!r}")
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0:
        raise RuntimeError("the demo failed")
    return now


class Screen:
    """A terminal's cells, as far as the demo uses one."""

    def __init__(self):
        self.rows, self.row, self.column, self.style = [[]], 0, 0, frozenset()
        self.cut = ""

    def write(self, text):
        text, position = self.cut + text, 0
        cut = CUT_ESCAPE.search(text)
        self.cut, text = (text[cut.start() :], text[: cut.start()]) if cut else ("", text)
        while position < len(text):
            sequence = ESCAPE.match(text, position)
            if sequence:
                self.control(sequence.group(1) or "", sequence.group(2) or "")
                position = sequence.end()
                continue
            self.put(text[position])
            position += 1

    def put(self, character):
        if character == "\r":
            self.column = 0
        elif character == "\n":
            self.row += 1
            while len(self.rows) <= self.row:
                self.rows.append([])
        elif character >= " ":
            cells = self.rows[self.row]
            cells.extend([(" ", frozenset())] * (self.column + 1 - len(cells)))
            cells[self.column] = (character, self.style)
            self.column += 1

    def control(self, numbers, letter):
        first = int(numbers) if numbers.isdigit() else 0
        if letter == "A":
            self.row = max(0, self.row - (first or 1))
        elif letter == "C":
            self.column += first or 1
        elif letter == "D":
            self.column = max(0, self.column - (first or 1))
        elif letter == "K" and first in (0, 2):
            del self.rows[self.row][self.column if first == 0 else 0 :]
        elif letter == "J" and first == 0:
            del self.rows[self.row][self.column :]
            del self.rows[self.row + 1 :]
        elif letter == "m":
            self.colour([int(part or 0) for part in numbers.split(";")])
        elif letter not in "hl":
            raise ValueError(f"the terminal does not know the sequence {numbers}{letter}")

    def colour(self, codes):
        if codes[:2] == [38, 5]:
            # The first sixteen of 256 colours are those of 30 to 37 and 90 to 97.
            codes = [codes[2] + (30 if codes[2] < 8 else 82)]
        for code in codes:
            if code == 0:
                self.style = frozenset()
            elif code == 39:
                self.style -= set(COLOURS.values())
            elif code in (1, 7):
                self.style |= {"bold" if code == 1 else "inverse"}
            elif code in COLOURS:
                self.style = (self.style - set(COLOURS.values())) | {COLOURS[code]}

    def lines(self):
        """Returns each line as runs of characters of one style."""
        found = []
        for cells in self.rows:
            runs = []
            for character, style in cells:
                if runs and runs[-1][1] == style:
                    runs[-1][0] += character
                else:
                    runs.append([character, style])
            if runs and not runs[-1][1]:
                runs[-1][0] = runs[-1][0].rstrip()
            found.append(tuple((text, style) for text, style in runs if text))
        return found


def events(recording):
    return [json.loads(line) for line in recording.splitlines()[1:]]


def last_screen(recording):
    """Returns the text of the last screen, without ports and sizes, which differ from run to run."""
    screen = Screen()
    for _, _, text in events(recording):
        screen.write(text)
    text = "\n".join("".join(run for run, _ in line) for line in screen.lines())
    return re.sub(r"\b\d+ bytes", "N bytes", re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:PORT", text))


def intervals(recording):
    """Yields row, line, the time at which it appears, and the time at which it goes, or None."""
    screen, shown = Screen(), {}
    for at, _, text in events(recording):
        screen.write(text)
        lines = dict(enumerate(screen.lines()))
        for row in sorted(shown.keys() | lines.keys()):
            line = lines.get(row, ())
            if row in shown and shown[row][0] != line:
                yield row, *shown.pop(row), at
            if row not in shown and line:
                shown[row] = (line, at)
    for row, (line, since) in sorted(shown.items()):
        yield row, line, since, None


def draw(recording):
    found = [entry for entry in intervals(recording) if entry[1]]
    width, height = int(COLUMNS * CELL) + 32, LINE * (max(row for row, *_ in found) + 1) + 56
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img">',
        "<title>antiphon demo in a terminal</title>",
        f"<desc>{escape(last_screen(recording))}</desc>",
        f"<style>text{{font-family:{MONO};font-size:13px;fill:#e6edf3;white-space:pre}}.bold{{font-weight:700}}.red{{fill:#ff7b72}}"
        ".green{fill:#56d364}.yellow{fill:#e3b341}.cyan{fill:#56d4dd}.command{fill:#79c0ff}.inverse{fill:#0d1117}.back{fill:#e6edf3}</style>",
        f'<rect x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="8" fill="#0d1117" stroke="#768390"/>',
    ]
    parts += [f'<circle cx="{20 + 18 * number}" cy="18" r="5" fill="#768390"/>' for number in range(3)]
    for row, line, since, until in found:
        y, column = 54 + LINE * row, 0
        # A viewer without animation shows the last screen, and so does one with it until the replay begins.
        parts.append("<g>" if until is None else '<g visibility="hidden">')
        if until is None:
            parts.append(f'<set attributeName="visibility" to="hidden" begin="{POSTER}s" end="{POSTER + since:g}s"/>')
        else:
            parts.append(f'<set attributeName="visibility" to="visible" begin="{POSTER + since:g}s" end="{POSTER + until:g}s"/>')
        for text, style in line:
            x, length = 16 + CELL * column, CELL * len(text)
            classes = sorted(style) or (["command"] if text.startswith("$ ") else [])
            if "inverse" in style:
                parts.append(f'<rect class="back" x="{x:g}" y="{y - 14}" width="{length:g}" height="{LINE}"/>')
            attributes = f' class="{" ".join(classes)}"' if classes else ""
            if text.strip():
                attributes += f' textLength="{length:g}" lengthAdjust="spacingAndGlyphs"'
                parts.append(f'<text x="{x:g}" y="{y}" xml:space="preserve"{attributes}>{escape(text)}</text>')
            column += len(text)
        parts.append("</g>")
    return "\n".join(parts) + "\n</svg>\n"
