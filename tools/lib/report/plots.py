"""Figures by matplotlib: as SVG to stand within a page, and as files. The same numbers give the same bytes."""
import io
import os
import re

os.environ.setdefault("MPLCONFIGDIR", "/tmp")  # otherwise it complains where there is no home

import matplotlib  # noqa: E402

matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402

matplotlib.rcParams.update({
    "svg.fonttype": "none",  # text stays text: small, and found by a search
    "svg.hashsalt": "weir",
    "font.size": 8, "axes.titlesize": 8.5, "legend.fontsize": 7,
    "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "grid.alpha": .3, "grid.linewidth": .5,
    "lines.linewidth": 1.3, "lines.markersize": 4,
})
CATEGORIES = ("client", "policy", "case", "request at A")  # of the x axis: no line between them
MANY = 40  # points of a curve: no markers then
WIDE = 72  # characters of a legend's line
PAPER = dict(linestyle="--", marker="D", markerfacecolor="none", linewidth=1)


def style_of(curve, categories):
    style = {"marker": "" if len(curve["x"]) > MANY else "o"}
    if len(curve["x"]) > MANY:
        style["linewidth"] = .9
    if curve["paper"]:
        style.update(PAPER)
    if categories:
        style["linestyle"] = "none"
    return style


def partner_of(name, seen):
    """The curve that the paper's (or theory's) is of: it gets the same colour."""
    return next((color for other, color in seen.items() if name == other or re.match(re.escape(other) + r"\W", name)), None)


def draw(figure):
    canvas, axes = pyplot.subplots(figsize=(4.4, 3.0), layout="constrained")
    categories, seen = figure["x_label"] in CATEGORIES, {}
    for curve in sorted(figure["curves"], key=lambda c: c["paper"]):
        # A point that is not there, as of something that was never served, is a gap.
        y = [float("nan") if v is None else v for v in curve["y"]]
        x = [float("nan") if v is None else v for v in curve["x"]]
        color = partner_of(curve["name"], seen) if curve["paper"] else None
        line, = axes.plot(x, y, label=curve["name"], color=color, **style_of(curve, categories))
        seen[curve["name"]] = line.get_color()
    axes.set(title=figure["title"], xlabel=figure["x_label"], ylabel=figure["y_label"])
    if categories:
        axes.set_xticks(sorted({x for c in figure["curves"] for x in c["x"] if x is not None}))
        axes.margins(x=.15)
    low, high = axes.get_ylim()
    if low > 0 and low < .5 * high:  # the size of things is seen from zero
        axes.set_ylim(bottom=0)
    if len(seen) > 1:
        columns = max(1, min(3, len(seen), WIDE // max(len(name) for name in seen)))
        axes.legend(loc="upper center", bbox_to_anchor=(.5, -.17), ncol=columns, frameon=False)
    return canvas


def as_svg(figure, key):
    """An <svg> element whose ids nobody else on the page has."""
    canvas = draw(figure)
    text = io.StringIO()
    canvas.savefig(text, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    pyplot.close(canvas)
    svg = text.getvalue()
    svg = svg[svg.index("<svg"):]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.S)
    for pattern in (r'(\bid=")', r'(href="#)', r"(url\(#)"):
        svg = re.sub(pattern, rf"\g<1>{key}-", svg)
    return svg


def save(figure, path):
    canvas = draw(figure)
    stamp = {"pdf": {"CreationDate": None}, "svg": {"Date": None}, "png": {}}[path.rsplit(".", 1)[1]]
    canvas.savefig(path, dpi=160, metadata=stamp)
    pyplot.close(canvas)
