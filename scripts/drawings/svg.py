"""A drawing area, and its colours on light and dark pages."""
from xml.sax.saxutils import escape

SANS = "system-ui, -apple-system, 'Segoe UI', 'Liberation Sans', 'DejaVu Sans', sans-serif"
MONO = "ui-monospace, 'SFMono-Regular', Menlo, Consolas, 'Liberation Mono', 'DejaVu Sans Mono', monospace"

# Class, property, colour on a light page, colour on a dark page. A picture has a background of its own: it is legible even
# where the page and the browser do not agree.
COLOURS = [
    ("page", "fill", "#ffffff", "#161b22"),
    ("page", "stroke", "#d0d7de", "#444c56"),
    ("box", "fill", "#f6f8fa", "#21262d"),
    ("box", "stroke", "#8c959f", "#768390"),
    ("text", "fill", "#1f2328", "#e6edf3"),
    ("muted", "fill", "#57606a", "#a9b4c0"),
    ("over", "stroke", "#ffffff", "#161b22"),
    ("cross", "stroke", "#57606a", "#a9b4c0"),
    ("life", "stroke", "#8c959f", "#768390"),
    ("wire", "stroke", "#0969da", "#6cb6ff"),
    ("head", "fill", "#0969da", "#6cb6ff"),
    ("first", "fill", "#8c959f", "#768390"),
    ("second", "fill", "#0969da", "#539bf5"),
    ("third", "fill", "#bc4c00", "#e0823d"),
    ("fourth", "fill", "#8250df", "#b083f0"),
    ("range", "stroke", "#1f2328", "#e6edf3"),
]


def style():
    def rules(column):
        return "".join(f".{rule[0]}{{{rule[1]}:{rule[column]}}}" for rule in COLOURS)

    return (
        f"text{{font-family:{SANS};font-size:14px}}.mono{{font-family:{MONO};font-size:13px}}.small{{font-size:12px}}"
        f".strong{{font-weight:600}}.over{{paint-order:stroke;stroke-width:5px}}.life{{stroke-dasharray:4 4}}"
        f"{rules(2)}@media(prefers-color-scheme:dark){{{rules(3)}}}"
    )


class Picture:
    """An SVG picture of a fixed size, in pixels."""

    def __init__(self, width, height, title, description):
        self.width, self.height = width, height
        self.parts = [f"<title>{escape(title)}</title>", f"<desc>{escape(description)}</desc>", f"<style>{style()}</style>"]
        self.rect(0.5, 0.5, width - 1, height - 1, "page", 8)

    def add(self, part):
        self.parts.append(part)

    def rect(self, x, y, width, height, classes, radius=0):
        self.add(f'<rect class="{classes}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="{radius}"/>')

    def line(self, x1, y1, x2, y2, classes, width=1.0):
        self.add(f'<path class="{classes}" d="M{x1:g} {y1:g}L{x2:g} {y2:g}" stroke-width="{width:g}" fill="none"/>')

    def text(self, x, y, text, classes="text", anchor="start"):
        self.add(f'<text class="{classes}" x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escape(text)}</text>')

    def arrow(self, x1, x2, y, classes="wire", head="head"):
        """Draws a level arrow from `x1` to `x2`."""
        back = -9 if x2 > x1 else 9
        self.line(x1, y, x2 + back / 2, y, classes, 1.6)
        self.add(f'<path class="{head}" d="M{x2:g} {y:g}l{back} -4.5v9z"/>')

    def note(self, x, y, width, lines, classes="box"):
        """Draws a box with lines of text, centred on `x`, and returns its lower edge."""
        height = 18 * len(lines) + 12
        self.rect(x - width / 2, y, width, height, classes, 5)
        for number, line in enumerate(lines):
            self.text(x, y + 20 + 18 * number, line, "text small", "middle")
        return y + height

    def render(self):
        size = f'width="{self.width}" height="{self.height}" viewBox="0 0 {self.width} {self.height}"'
        return f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">\n' + "\n".join(self.parts) + "\n</svg>\n"
