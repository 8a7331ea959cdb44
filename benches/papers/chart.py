"""Bars and lines as SVG, in the colors of pleach's figures, on a surface of their own for light and dark pages."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

WIDTH = 760.0
STYLE = """
text { font: 12px "Helvetica Neue", Arial, "Liberation Sans", "DejaVu Sans", sans-serif; fill: #1b1f23; }
.paper { fill: #fff; } .title { font-size: 15px; font-weight: 600; } .note { fill: #4a545e; }
.grid { stroke: #e3e7eb; } .base { stroke: #4a545e; } .whisker { stroke: #1b1f23; stroke-width: 1.4; }
.published { fill: none; stroke: #1b1f23; stroke-width: 1.6; } .line { fill: none; stroke-width: 2; stroke-linejoin: round; }
.dashed { stroke-dasharray: 6 4; }
.f0 { fill: #0072b2; } .f1 { fill: #d55e00; } .f2 { fill: #00805d; } .f3 { fill: #cc79a7; }
.f4 { fill: #b57600; } .f5 { fill: #56b4e9; } .f6 { fill: #6e7781; }
.s0 { stroke: #0072b2; } .s1 { stroke: #d55e00; } .s2 { stroke: #00805d; } .s3 { stroke: #cc79a7; }
.s4 { stroke: #b57600; } .s5 { stroke: #56b4e9; } .s6 { stroke: #6e7781; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; } .paper { fill: #161b22; } .note { fill: #adb7c2; } .grid { stroke: #30363d; }
  .base { stroke: #adb7c2; } .whisker, .published { stroke: #e6edf3; }
  .f0 { fill: #3a9bdc; } .f1 { fill: #f0803c; } .f2 { fill: #2fb78e; } .f4 { fill: #d99a2b; }
  .s0 { stroke: #3a9bdc; } .s1 { stroke: #f0803c; } .s2 { stroke: #2fb78e; } .s4 { stroke: #d99a2b; }
}
"""
COLORS = 7


def bars(
    title: str,
    groups: Mapping[str, Mapping[str, float | None]],
    unit: str,
    published: Mapping[tuple[str, str], float] | None = None,
    errors: Mapping[tuple[str, str], float] | None = None,
) -> str:
    """Groups of vertical bars: `groups[group][series]` is a value, None where it is missing.

    `published[group, series]` draws a line across its bar, `errors[group, series]` a whisker of that half length.
    """
    names = list(dict.fromkeys(name for values in groups.values() for name in values))
    published, errors = published or {}, errors or {}
    values = [value for group in groups.values() for value in group.values() if value is not None]
    values += list(published.values())
    values += [groups[g][s] + half for (g, s), half in errors.items() if (groups[g].get(s) or None) and math.isfinite(half)]
    frame = Frame(title, unit, min([0.0, *values]), max([0.0, *values]), names, bool(published))
    left, right = frame.left, WIDTH - 16
    step = (right - left) / max(len(groups), 1)
    width = min(step * 0.82 / max(len(names), 1), 56.0)
    for at, (group, series) in enumerate(groups.items()):
        middle = left + step * (at + 0.5)
        start = middle - width * len(names) / 2
        for color, name in enumerate(names):
            value, x = series.get(name), start + color * width
            if value is not None:
                frame.bar(x, width, value, color)
            mark = published.get((group, name))
            if mark is not None:
                y = frame.y(mark)
                frame.add(f'<line class="published" x1="{x - 1:.1f}" x2="{x + width + 1:.1f}" y1="{y:.1f}" y2="{y:.1f}"/>')
            half = errors.get((group, name))
            if half is not None and value is not None and math.isfinite(half):
                low, high = frame.y(value - half), frame.y(value + half)
                frame.add(f'<line class="whisker" x1="{x + width / 2:.1f}" x2="{x + width / 2:.1f}" y1="{low:.1f}" y2="{high:.1f}"/>')
        frame.label(middle, group, step)
    return frame.close()


def lines(
    title: str,
    series: Mapping[str, Sequence[tuple[float, float]]],
    x_label: str,
    unit: str,
    log_x: bool = False,
    dashed: Sequence[str] = (),
    from_zero: bool = True,
) -> str:
    """Lines with points: `series[name]` are (x, y) by rising x. `dashed` names those that are published."""
    points = [point for values in series.values() for point in values]
    ys = [y for _, y in points]
    low, high = (min([0.0, *ys]) if from_zero else min(ys)), max([0.0, *ys] if from_zero else ys)
    frame = Frame(title, unit, low, high, list(series), False, x_label)
    xs = sorted({x for x, _ in points})
    scale = math.log if log_x else float
    first, last = scale(xs[0]), scale(xs[-1])
    left, right = frame.left + 14, WIDTH - 40

    def px(x: float) -> float:
        return left + (scale(x) - first) / ((last - first) or 1.0) * (right - left)

    shown = -math.inf
    for x in xs if log_x or len(xs) <= 12 else even(first, last):
        if px(x) - shown >= 46:
            frame.label(px(x), short(x), 200)
            shown = px(x)
    for color, (name, values) in enumerate(series.items()):
        path = " ".join(f"{px(x):.1f},{frame.y(y):.1f}" for x, y in values)
        dash = " dashed" if name in dashed else ""
        frame.add(f'<polyline class="line s{color % COLORS}{dash}" points="{path}"/>')
        for x, y in values:
            frame.add(f'<circle class="f{color % COLORS}" cx="{px(x):.1f}" cy="{frame.y(y):.1f}" r="3"/>')
    return frame.close()


class Frame:
    """Title, legend, vertical axis and grid of a picture under construction."""

    def __init__(
        self, title: str, unit: str, low: float, high: float, names: Sequence[str], published: bool, x_label: str = ""
    ) -> None:
        self.parts: list[str] = []
        self.step = nice((high - low) / 5 or 1.0)
        self.low = math.floor(low / self.step + 1e-9) * self.step
        self.high = math.ceil(high / self.step - 1e-9) * self.step
        if self.high <= self.low:
            self.high = self.low + self.step
        self.x_label = x_label
        self.text(16, 26, title, "title")
        self.text(16, 46, unit, "note")
        y = self.legend(list(names), published)
        self.top, self.bottom = y + 16, y + 16 + 240
        count = round((self.high - self.low) / self.step)
        ticks = [self.low + self.step * n for n in range(count + 1)]
        labels = [short(tick, self.step) for tick in ticks]
        self.left = 24 + max(len(label) for label in labels) * 7.2
        for tick, label in zip(ticks, labels, strict=True):
            y = self.y(tick)
            kind = "base" if abs(tick) < self.step / 1e6 else "grid"
            self.add(f'<line class="{kind}" x1="{self.left:.1f}" x2="{WIDTH - 16}" y1="{y:.1f}" y2="{y:.1f}"/>')
            self.text(self.left - 6, y + 4, label, "note", "end")

    def legend(self, names: list[str], published: bool) -> float:
        """Draws the names of the series, and returns the y below."""
        x, y = 16.0, 66.0
        entries = [(color, name) for color, name in enumerate(names)] if len(names) > 1 else []
        for color, name in [*entries, *([(-1, "published")] if published else [])]:
            width = 26 + len(name) * 7.0
            if x + width > WIDTH - 16:
                x, y = 16.0, y + 18
            if color < 0:
                self.add(f'<line class="published" x1="{x}" x2="{x + 12}" y1="{y - 4}" y2="{y - 4}"/>')
            else:
                self.add(f'<rect class="f{color % COLORS}" x="{x}" y="{y - 10}" width="12" height="12"/>')
            self.text(x + 17, y, name)
            x += width + 10
        return y if entries or published else 48.0

    def y(self, value: float) -> float:
        """Pixel of a value."""
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return self.bottom - share * (self.bottom - self.top)

    def bar(self, x: float, width: float, value: float, color: int) -> None:
        """Draws a bar from 0."""
        top, base = self.y(max(value, 0.0)), self.y(min(value, 0.0))
        height = max(base - top, 0.5)
        place = f'x="{x + 0.5:.1f}" y="{top:.1f}" width="{max(width - 1, 1):.1f}" height="{height:.1f}"'
        self.add(f'<rect class="f{color % COLORS}" {place}/>')

    def label(self, x: float, text: str, room: float) -> None:
        """Writes a label below the axis, in up to two lines if it is wider than its room."""
        rows = [text]
        if len(text) * 6.6 > room and " " in text:
            middle = min((at for at, c in enumerate(text) if c == " "), key=lambda at: abs(at - len(text) / 2))
            rows = [text[:middle], text[middle + 1 :]]
        for number, row in enumerate(rows):
            self.text(x, self.bottom + 18 + 14 * number, row, "", "middle")

    def text(self, x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> None:
        """Writes a text."""
        classes = f' class="{kind}"' if kind else ""
        self.add(f'<text{classes} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>')

    def add(self, part: str) -> None:
        """Appends an element."""
        self.parts.append(part)

    def close(self) -> str:
        """Returns the document."""
        height = self.bottom + 44
        if self.x_label:
            self.text((self.left + WIDTH - 16) / 2, self.bottom + 38, self.x_label, "note", "middle")
            height += 8
        size = f'width="{WIDTH:.0f}" height="{height:.0f}" viewBox="0 0 {WIDTH:.0f} {height:.0f}"'
        paper = f'<rect class="paper" width="{WIDTH:.0f}" height="{height:.0f}"/>'
        body = "\n".join([f"<style>{STYLE}</style>", paper, *self.parts])
        return f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">\n{body}\n</svg>\n'


def even(first: float, last: float) -> list[float]:
    """Round numbers between two, about eight of them."""
    step = nice((last - first) / 8)
    return [step * number for number in range(math.ceil(first / step - 1e-9), math.floor(last / step + 1e-9) + 1)]


def nice(rough: float) -> float:
    """The step of 1, 2 or 5 times a power of 10 that is at least `rough`."""
    power = 10.0 ** math.floor(math.log10(rough))
    return next(digit * power for digit in (1, 2, 5, 10) if digit * power >= rough * (1 - 1e-9))


def short(value: float, step: float | None = None) -> str:
    """A number of an axis: decimals as its step needs, a minus sign in place of a hyphen."""
    if step is None:
        text = f"{value:g}" if abs(value) < 1e6 else f"{value:.0f}"
    else:
        text = f"{value:.{max(0, -math.floor(math.log10(step) + 1e-9))}f}"
    return text.replace("-", "−") if float(text) != 0 else text.replace("-", "")
