"""What the simulator and the acceptance programs measured, as rows of paper, simulator, live and verdict."""
import collections
import dataclasses
import json

# One row for both where a live program calls a quantity as the simulator's check of it, or as said here. A live number keeps its
# own expectation where its scale is another.
PAIRS = {
    **{("E4", f"1 : 4, g : f in all, g has {there} elsewhere"): f"g : f in all, g on B {rate} MB/s"
       for there, rate in (("a quarter of a brick", 50), ("seven eighths of one", 175))},
    ("E2", "f : g = 1 : 2, g's share of the brick"): "share of g at 20 threads",
    ("E2", "f's share"): "share of f at 20 threads",
    ("E2", "g's latency with 20 threads over that with 5"): "latency of g at 20 threads over 5",
    ("E3", "g's total over f's, g has 0 elsewhere"): "g : f in all, g with 0 threads on B",
    ("E3", "g's total over f's, g has 0 elsewhere: f = (C + B) / 2, MiB/s"): "f, MB/s, g with 0 threads on B",
    ("E5", "g striped on 3 bricks, f on one: g's total over f's"): "g : f in all, 20 threads of g",
    **{("E6", f"{text} coordinators: g's total over f's"): f"g : f in all, {n} coordinator(s)" for n, text in ((2, "two"), (4, "four"))},
    **{("E6", f"{text} coordinators: g's total over f's: f, MiB/s (paper 4.50 of 6)"): f"f, MB/s, {n} coordinator(s)"
       for n, text in ((2, "two"), (4, "four"))},
    **{("E7", f"hybrid, {n} coordinator(s): g's share of A >= 1/12"):
       f"share of g on A, all of B its own, 20 threads on B, {n} coordinator(s)" for n in (1, 2)},
    **{("E7", f"hybrid, {n} coordinator(s): g's share of A >= 1/12: g's total over f's, g has all of B (derived 1.372)"):
       f"g : f in all (text: reasonably close), 20 threads on B, {n} coordinator(s)" for n in (1, 2)},
    ("E11", "share of the blocked stream on A"): "share of the blocked stream on A after 600 s",
    ("E11", "2 random layouts: furthest total from theorem 3"): "12 random layouts: furthest total from theorem 3",
    **{("E26", f"{who}, {when}"): f"{who}, IOPS, {ours}" for who in ("client 1", "client 2", "total") for when, ours in
       (("h .45", "200-500 s, h .45"), ("h .2, old weights", "520-595 s, h .2 under the old weights"), ("h .2", "620-900 s, h .2"))},
    ("E28", "BAA, total"): "array under BAA, total, IOPS (paper: 1396, what the capacities are fitted to)",
    **{("E30b", f"example V, {name}"): f"example V, TOTAL-DSFQ, IOPS, client {i}" for i, name in enumerate("pqrs", 1)},
    **{("E30b", f"table 3, {name}"): f"table 3, TOTAL-DSFQ, IOPS, client {i}" for i, name in enumerate(("f20", "f40", "f98", "f100"), 1)},
    **{("E30b", f"example I, fair, h {hit}"): f"example I, equal weights, TOTAL-DSFQ, IOPS, client {i}"
       for i, hit in enumerate((".5", ".9"), 1)},
    ("E32", "WebSearch under CVC, part of its promise"): "WebSearch under CVC, part of what it was promised",
    ("E32", "WebSearch under CVC, part of its promise: under C-SCAN (TPC-C is as large as gives .80 to .95)"):
    "WebSearch under C-SCAN, part of what it was promised",
    ("E32", "WebSearch under CVC, part of its promise: CVC less C-SCAN"): "WebSearch, CVC less C-SCAN, part of its promise",
    ("E32", "Financial within 120 ms, CVC"): "Financial within 120 ms, CVC",
    ("E32", "Financial within 120 ms, CVC: CVC less C-SCAN"): "Financial within 120 ms, CVC less C-SCAN",
    ("E36", "VC over C-SCAN (derived .65)"): "VC over C-SCAN with much to spare (S = 2)",
    ("E36", "CVC over VC (no bound on runs)"): "CVC over VC, S = 2",
    **{("E39", f"efficiency over C-SCAN's, est = {part} P90"): f"efficiency over C-SCAN's with est = {part} P90 (text: almost identical)"
       for part in ("0.53", "0.70", "0.85", "1.00")},
    ("E42", "5/15/20 of 40, W1 alone, MiB/s"): "[2,30) writer 1, MiB/s",
    ("E42", "5/15/20 of 40, W1 alone, MiB/s: W1 and W2"): "[32,60) sum",
    **{("E42", f"5/15/20 of 40, W1 alone, MiB/s: three: reserved {rate}"): f"[62,90) writer {i}" for i, rate in enumerate((5, 15, 20), 1)},
    ("E44", "(1) wait for tokens, ms"): "(1) wait beyond the device's own time, ms",
    **{("E55", f"limit of 15 MiB/s over all OSDs, {part} % on one OSD{live}"): f"{ours}, {part} % on one OSD"
       for part in (33, 80) for live, ours in (("", "limit of 30 MiB/s over all OSDs"), (": its highest second", "its highest second"))},
    **{("E55", f"promise of 160 requests a second over all OSDs, {part} % on one OSD"):
       f"promise of 2000 requests a second over all OSDs, {part} % on one OSD" for part in (33, 80, 100)},
    **{("E53", f"R of three OSDs, access {spread}, 1 mount(s): least second{more}"): f"{ours}, MiB/s, {spread}, 1 coordinator(s)"
       for spread in ("even", "80/10/10", "one OSD") for more, ours in (("", "lowest second"), (": most second", "highest second"))},
}

NOT_REPRODUCIBLE = "not reproducible"


class ReportError(Exception):
    """The text is what the person reads."""


@dataclasses.dataclass
class Row:
    what: str
    paper: float = None
    sim: dict = None   # a check of the simulator
    live: dict = None  # a line of WEIR_RESULTS

    @property
    def verdict(self):
        """off, not reproduced, ok (something was asserted and held), or shown (nothing was)."""
        states = [state for state in (sim_state(self.sim), live_state(self.live)) if state]
        return next(word for word in ("off", "not reproduced", "ok", "shown") if word in states)


def sim_state(check):
    if check is None:
        return None
    if not check["pass"]:
        return "off"
    if check["name"].startswith(NOT_REPRODUCIBLE):
        return "not reproduced"
    return "shown" if check["low"] is None and check["high"] is None else "ok"


def live_state(line):
    if line is None:
        return None
    return {True: "ok", False: "off", None: "shown"}[line.get("pass")]


def load_sim(file):
    try:
        document = json.load(file)
        return {e["id"]: e for e in document["experiments"]}, document.get("seed")
    except (ValueError, KeyError, TypeError) as error:
        raise ReportError(f"the simulator's document is not one of `weir-sim run -o json`: {error}") from error


@dataclasses.dataclass
class Live:
    lines: dict    # experiment: {what: line}
    figures: dict  # experiment: {title: figure, as the simulator's}


def load_live(path):
    """Of lines that say the same, the last; a file that is not there is an error, an empty one is not."""
    live = Live(collections.defaultdict(dict), collections.defaultdict(dict))
    if path is None:
        return live
    try:
        with open(path) as file:
            for number, text in enumerate(file, 1):
                if text.strip():
                    take_line(live, json.loads(text), f"{path}:{number}")
    except OSError as error:
        raise ReportError(f"--live: cannot read '{path}': {error.strerror}") from error
    except ValueError as error:
        raise ReportError(f"--live: '{path}' is not what WEIR_RESULTS collects: {error}") from error
    return live


def take_line(live, line, where):
    try:
        if "curve" not in line:
            live.lines[line["experiment"]][line["what"]] = {"value": line["value"], **line}
            return
        empty = {"title": line["figure"], "x_label": line["x_label"], "y_label": line["y_label"], "curves": []}
        figure = live.figures[line["experiment"]].setdefault(line["figure"], empty)
        figure["curves"] = [c for c in figure["curves"] if c["name"] != line["curve"]]
        figure["curves"].append({"name": line["curve"], "paper": False, "x": line["x"], "y": line["y"]})
    except (KeyError, TypeError) as error:
        raise ReportError(f"--live: {where}: {error} is missing") from error


def rows(experiment, check_list, lines):
    """Rows of one experiment: the simulator's in its order, each with the live line of the same thing; then the other live ones."""
    partner, names = {}, {c["name"] for c in check_list}
    for (of, what), name in PAIRS.items():
        if of == experiment and check_list:
            if name not in names:
                raise ReportError(f"{experiment} has no check '{name}', which a live row is to stand beside (results.py)")
            if what in lines:
                partner[name] = lines[what]
    partner.update((name, lines[name]) for name in names & lines.keys())
    taken = {line["what"] for line in partner.values()}
    found = [Row(c["name"], c["expected"], c, partner.get(c["name"])) for c in check_list]
    return found + [Row(what, line.get("paper"), None, line) for what, line in lines.items() if what not in taken]


def counts(row_list):
    """{simulator: (held, asserted), live: (held, asserted)} of some rows."""
    result = {}
    for side, state in (("simulator", lambda r: sim_state(r.sim)), ("live", lambda r: live_state(r.live))):
        states = [state(r) for r in row_list]
        result[side] = (states.count("ok"), states.count("ok") + states.count("off"))
    return result


def summary(row_list, lacks=""):
    """One word for all of them, and for what they lack of an element."""
    verdicts = {r.verdict for r in row_list}
    if "off" in verdicts:
        return "off"
    if lacks or "not reproduced" in verdicts:
        return "in part"
    return "ok" if "ok" in verdicts else "shown"
