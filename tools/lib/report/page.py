"""The page: HTML that needs nothing beside itself."""
import html
import os

import elements
import results

STYLE = """
:root { color-scheme: light dark; --line: #8884; --ok: #15803d; --off: #b91c1c; --part: #a16207; --soft: #8882; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 1180px; margin: 0 auto; padding: 1rem 1.5rem 4rem; }
h1 { font-size: 1.6rem; } h2 { margin-top: 3rem; border-bottom: 2px solid var(--line); } h3 { margin: 2.2rem 0 .2rem; }
p { max-width: 80ch; margin: .3rem 0; } .dim { opacity: .75; } a { color: inherit; }
table { border-collapse: collapse; margin: .8rem 0; font-size: .86rem; width: 100%; }
th, td { padding: .18rem .6rem; border-bottom: 1px solid var(--line); text-align: right; vertical-align: top; }
th:first-child, td:first-child, td.text, th.text { text-align: left; } thead th { border-bottom: 2px solid var(--line); }
td { font-variant-numeric: tabular-nums; } .bound { opacity: .7; font-size: .9em; white-space: nowrap; }
.ok { color: var(--ok); } .off { color: var(--off); font-weight: 700; } .part, .not { color: var(--part); }
.plots { display: flex; flex-wrap: wrap; gap: .6rem; margin: .8rem 0; }
figure { margin: 0; background: #fff; border: 1px solid var(--line); border-radius: 6px; padding: .3rem; }
figure svg { display: block; width: 420px; max-width: 100%; height: auto; } figcaption { color: #444; font-size: .75rem; padding: 0 .4rem; }
details > summary { cursor: pointer; } nav { font-size: .9rem; }
"""
WORDS = {"ok": ("ok", "holds"), "off": ("off", "deviates"), "shown": ("dim", "shown, not judged"),
         "not reproduced": ("not", "not reproduced"), "in part": ("part", "in part")}
escape = html.escape


def number(value):
    """Five digits are finer than anything measured."""
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return escape(str(value))
    text = f"{value:.4g}" if abs(value) < 1e4 else f"{value:,.0f}"
    return text.replace("-", "−", 1) if text.startswith("-") else text


def bound(low, high):
    if low is None and high is None:
        return ""
    if low is None:
        return f"≤ {number(high)}"
    if high is None:
        return f"≥ {number(low)}"
    return number(low) if low == high else f"{number(low)} … {number(high)}"


def with_bound(value, low, high, of=None):
    """A number, what it stands against when that is not the row's, and its bounds below it."""
    more = " ".join(part for part in (f"of {number(of)}" if of is not None else "", f"[{bound(low, high)}]" if bound(low, high) else "")
                    if part)
    return number(value) + (f' <span class="bound">{more}</span>' if more else "")


def verdict(word):
    style, text = WORDS[word]
    return f'<td class="text {style}">{text}</td>'


def row_html(row):
    sim = with_bound(row.sim["measured"], row.sim["low"], row.sim["high"]) if row.sim else ""
    live = ""
    if row.live:
        of = row.live.get("paper") if row.live.get("paper") != row.paper else None
        live = with_bound(row.live["value"], row.live.get("low"), row.live.get("high"), of)
        if row.live.get("unit"):
            live += " " + escape(row.live["unit"])
    return f"<tr><td>{escape(row.what)}</td><td>{number(row.paper)}</td><td>{sim}</td><td>{live}</td>{verdict(row.verdict)}</tr>"


def table_html(rows):
    head = '<thead><tr><th>what</th><th>paper</th><th>simulator</th><th>live</th><th class="text">verdict</th></tr></thead>'
    return f"<table>{head}<tbody>{''.join(row_html(r) for r in rows)}</tbody></table>"


class Page:
    """Gathers sections; `plot(figure, key)` makes an <svg>."""

    def __init__(self, sim, seed, live, plot):
        self.sim, self.seed, self.live, self.plot = sim, seed, live, plot

    def rows(self, experiment):
        checks = self.sim.get(experiment, {}).get("checks", [])
        return results.rows(experiment, checks, self.live.lines.get(experiment, {}))

    def figures(self, experiment):
        """(where from, figure) of one experiment."""
        found = [("simulator", f) for f in self.sim.get(experiment, {}).get("figures", [])]
        return found + [("live", f) for f in self.live.figures.get(experiment, {}).values()]

    def plots_html(self, experiment):
        parts = []
        for index, (side, figure) in enumerate(self.figures(experiment), 1):
            svg = self.plot(figure, f"{experiment}-{index}")
            parts.append(f"<figure>{svg}<figcaption>{experiment}, {side}</figcaption></figure>")
        return f'<div class="plots">{"".join(parts)}</div>' if parts else ""

    def experiment_html(self, experiment):
        about = self.sim.get(experiment)
        rows = self.rows(experiment)
        if about is None and not rows and not self.figures(experiment):
            return f'<p class="dim">{experiment} was not run.</p>'
        text = f"<p><b>{experiment}</b> {escape(about['title'])}. {escape(about['about'])}</p>" if about else ""
        return text + self.plots_html(experiment) + (table_html(rows) if rows else "")

    def element_html(self, paper, element):
        parts = [f'<h3 id="{anchor(paper, element)}">{escape(element.label)}: {escape(element.about)}</h3>']
        parts += [self.experiment_html(e) for e in element.experiments]
        if element.note:
            parts.append(f'<p class="dim">{escape(element.note)}</p>')
        if element.lacks:
            parts.append(f'<p class="part">Not reproduced: {escape(element.lacks)}</p>')
        return "".join(parts)

    def paper_html(self, paper):
        head = f'<h2 id="{paper.key}">{escape(paper.title)}</h2><p class="dim">{escape(paper.reference)}</p>'
        return head + "".join(self.element_html(paper, e) for e in paper.elements)

    def overview_html(self):
        lines = []
        for paper in elements.PAPERS:
            for element in paper.elements:
                lines.append(self.overview_row(paper, element))
        head = ('<thead><tr><th>paper</th><th class="text">element</th><th class="text">experiments</th><th>simulator</th><th>live</th>'
                '<th class="text">verdict</th></tr></thead>')
        return f"<table>{head}<tbody>{''.join(lines)}</tbody></table>"

    def overview_row(self, paper, element):
        rows = [r for e in element.experiments for r in self.rows(e)]
        link = f'<a href="#{anchor(paper, element)}">{escape(element.label)}</a>'
        cells = f'<td>{paper.key}</td><td class="text">{link}: {escape(element.about)}</td><td class="text">{" ".join(element.experiments)}</td>'
        if not rows:
            why = "not run" if element.experiments else "no data"
            return f'<tr>{cells}<td></td><td></td><td class="text dim">{why}</td></tr>'
        counts = results.counts(rows)
        sides = "".join(f"<td>{held} of {asked}</td>" if asked else "<td></td>" for held, asked in
                        (counts["simulator"], counts["live"]))
        return f"<tr>{cells}{sides}{verdict(results.summary(rows, element.lacks))}</tr>"

    def beyond_html(self):
        """What no paper has: folded, the experiments and then live programs of names of their own."""
        known = elements.of_papers()
        others = [e for e in self.sim if e not in known]
        others += [e for e in {**self.live.lines, **self.live.figures} if e not in known and e not in others]
        parts = []
        for experiment in others:
            source = self.sim.get(experiment, {}).get("source", "live only")
            rows = self.rows(experiment)
            style, text = WORDS[results.summary(rows)]
            word = f' <span class="{style}">{text}</span>' if rows else ""
            title = self.sim.get(experiment, {}).get("title", "")
            parts.append(f"<details><summary>{escape(experiment)} {escape(title)} <span class=\"dim\">({escape(source)})</span>{word}</summary>"
                         f"{self.experiment_html(experiment)}</details>")
        return '<h2 id="beyond">Beyond the papers</h2>' + "".join(parts) if parts else ""

    def html(self):
        seed = f", seed {self.seed}" if self.seed is not None else ""
        live = "" if self.live.lines or self.live.figures else " No live results were given (--live)."
        beyond = self.beyond_html()
        nav = " · ".join(f'<a href="#{p.key}">{p.key}</a>' for p in elements.PAPERS)
        nav += ' · <a href="#beyond">beyond the papers</a>' if beyond else ""
        return ("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">"
                f"<title>WeirFS beside its papers</title><style>{STYLE}</style></head><body>\n"
                "<h1>WeirFS beside its papers</h1>\n"
                "<p>Every figure, table and worked example of the five papers that WeirFS is built on: what the paper says (or what follows from "
                "it), what the simulator measures with the product's scheduler in virtual time, and what daemons and mounts measured. "
                f"Numbers in brackets are bounds that a check asserts. Simulator: weir-sim{seed}.{live} Dashed curves and diamonds are the "
                "paper's numbers, or theory's. A live number whose scale is another stands with its own expectation (“of …”).</p>\n"
                f"<nav>{nav}</nav>\n{self.overview_html()}\n" + "\n".join(self.paper_html(p) for p in elements.PAPERS)
                + f"\n{beyond}\n</body></html>\n")


def anchor(paper, element):
    return paper.key + "-" + "".join(c if c.isalnum() else "-" for c in element.label)


def save_plots(page, directory, extension, save):
    os.makedirs(directory, exist_ok=True)
    for experiment in dict.fromkeys([*page.sim, *page.live.figures]):
        for index, (side, figure) in enumerate(page.figures(experiment), 1):
            save(figure, os.path.join(directory, f"{experiment}-{index}-{side}.{extension}"))
