"""The benchmark's small calls, from the tables that bench/run.sh writes."""
import re

from .svg import Picture

PASSAGE = re.compile(r"(?<=^<!-- results: scripts/pictures writes this passage from results.md -->\n).*?(?=^<!-- end of results -->)", re.M | re.S)
CLASSES = {"bare": "first", "antiphon": "second", "rmcp": "third", "before": "fourth"}
LEFT, RIGHT, BAR = 110, 760, 16


def rows(text):
    """Yields request, server, median, lowest and highest CPU µs of the table below `## Small calls`."""
    section = re.search(r"^## Small calls\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    for line in section.group(1).splitlines() if section else []:
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        spread = re.fullmatch(r"([\d.]+) \[([\d.]+)-([\d.]+)\]", cells[3]) if len(cells) == 10 else None
        if spread:
            yield cells[0], cells[2], *(float(part) for part in spread.groups())


def fill(readme, text):
    """Returns the README with the plot, and with what was measured; the tables are in results.md."""
    said = re.search(r"^- Date: .*?(?=\n\n)", text, re.M | re.S)
    if not said:
        raise ValueError("there is no list that begins with `- Date:`")
    passage = f"\n![Processor time of the three servers for each small call](../docs/pictures/bench.svg)\n\n{said.group(0)}\n\n"
    filled, passages = PASSAGE.subn(lambda _: passage, readme)
    if passages != 1:
        raise ValueError("bench/README.md has no passage for the results")
    return filled


def draw(text):
    table = {}
    for request, server, *figures in rows(text):
        table.setdefault(request, []).append((server, figures))
    if not table:
        raise ValueError("there is no table below `## Small calls`")
    said = dict(re.findall(r"^- (Date|Command|Commit): (.*)$", text, re.M))
    highest = max(figures[2] for bars in table.values() for _, figures in bars)
    grid = next(step for step in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 10000) if highest / step <= 10)
    scale = (RIGHT - LEFT) / highest
    height = 106 + sum(BAR * len(bars) + 20 for bars in table.values())
    words = "; ".join(f"{request}: " + ", ".join(f"{server} {figures[0]:g}" for server, figures in bars) for request, bars in table.items())
    picture = Picture(860, height, "Processor time of the server for a request", f"Microseconds, medians. {words}.")
    picture.text(20, 30, "Processor time of the server for one request, µs", "text strong")
    servers = list(dict.fromkeys(server for bars in table.values() for server, _ in bars))
    for number, server in enumerate(servers):
        picture.rect(470 + 100 * number, 19, 12, 12, CLASSES.get(server, "fourth"))
        picture.text(488 + 100 * number, 30, server, "text small")
    for tick in range(0, int(highest) + 1, grid):
        picture.line(LEFT + tick * scale, 48, LEFT + tick * scale, height - 52, "life", 0.6)
        picture.text(LEFT + tick * scale, height - 36, str(tick), "muted small", "middle")
    y = 58
    for request, bars in table.items():
        picture.text(LEFT - 10, y + BAR * len(bars) / 2 + 5, request, "text mono", "end")
        for server, (median, low, high) in bars:
            picture.rect(LEFT, y + 1, median * scale, BAR - 2, CLASSES.get(server, "fourth"))
            picture.line(LEFT + low * scale, y + BAR / 2, LEFT + high * scale, y + BAR / 2, "range", 1.2)
            picture.text(LEFT + high * scale + 6, y + BAR / 2 + 4, f"{median:g}", "text small")
            y += BAR
        y += 20
    command = said.get("Command", "").split(",")[0].replace("`", "")
    picture.text(20, height - 14, f"{said.get('Date', '').split(',')[0]}, {command}, commit {said.get('Commit', '')}", "muted small")
    return picture.render()
