#!/usr/bin/env python3
"""The page of `weir-sim report` without a simulator: rows, verdicts, what is on the page, errors in words."""
import contextlib
import importlib.util
import io
import json
import os
import re
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
REPORT = os.path.join(HERE, "..", "..", "..", "tools", "lib", "report")
sys.path.insert(0, REPORT)

import interpreter  # noqa: E402

if __name__ == "__main__":
    interpreter.prefer_one_with_matplotlib()

import elements  # noqa: E402
import page  # noqa: E402
import results  # noqa: E402

spec = importlib.util.spec_from_file_location("report_main", os.path.join(REPORT, "__main__.py"))
report = importlib.util.module_from_spec(spec)
spec.loader.exec_module(report)

try:
    import plots
except ImportError:
    plots = None


results.PAIRS = {}  # The checks below are none of the simulator's.


def check(name, expected=1.0, measured=1.0, low=.9, high=1.1, passed=True):
    return {"name": name, "expected": expected, "measured": measured, "low": low, "high": high, "pass": passed}


FIGURE = {"title": "f & g", "x_label": "s", "y_label": "MB/s",
          "curves": [{"name": "f", "paper": False, "x": [0, 1], "y": [1, None]}, {"name": "f, paper", "paper": True, "x": [0], "y": [1]}]}


def experiment(name, source, *checks, figures=()):
    return {"id": name, "title": f"title of {name}", "source": source, "about": "about <it>", "checks": list(checks),
            "figures": list(figures), "pass": True}


def document(*experiments):
    return json.dumps({"version": 1, "seed": 7, "experiments": list(experiments), "pass": True})


def live_of(*lines):
    live = results.load_live(None)
    for line in lines:
        results.take_line(live, line, "x:1")
    return live


def line(experiment_, what, value, paper=None, passed=None):
    return {"experiment": experiment_, "what": what, "paper": paper, "value": value, "unit": "", "low": None, "high": None,
            "pass": passed}


class RowsTest(unittest.TestCase):
    def test_verdicts_of_the_simulator(self):
        shown = check("shown", low=None, high=None)
        never = check("not reproducible: x", low=None, high=None)
        words = [r.verdict for r in results.rows("E1", [check("a"), check("b", passed=False), shown, never], {})]
        self.assertEqual(words, ["ok", "off", "shown", "not reproduced"])

    def test_what_misses_live_deviates_although_the_simulator_holds(self):
        pair = {("E2", "share here"): "share"}
        old, results.PAIRS = results.PAIRS, pair
        try:
            lines = {"share here": line("E2", "share here", .5, 1, False), "more": line("E2", "more", 2)}
            rows = results.rows("E2", [check("share"), check("other")], lines)
        finally:
            results.PAIRS = old
        self.assertEqual([(r.what, r.verdict, r.live is not None) for r in rows],
                         [("share", "off", True), ("other", "ok", False), ("more", "shown", True)])
        self.assertEqual(results.counts(rows), {"simulator": (2, 2), "live": (0, 1)})

    def test_a_pair_without_a_check_is_an_error(self):
        old, results.PAIRS = results.PAIRS, {("E2", "x"): "renamed"}
        try:
            with self.assertRaisesRegex(results.ReportError, "E2 has no check 'renamed'"):
                results.rows("E2", [check("share")], {})
        finally:
            results.PAIRS = old

    def test_the_last_of_lines_that_say_the_same_counts(self):
        live = live_of(line("E2", "share", .1), line("E2", "share", .2))
        self.assertEqual(live.lines["E2"]["share"]["value"], .2)

    def test_live_files_that_are_none_say_why(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "live.json")
            for text, why in (("{", "not what WEIR_RESULTS collects"), ('{"experiment": "E2"}', ":1: 'value' is missing")):
                with open(path, "w") as file:
                    file.write(text)
                with self.assertRaisesRegex(results.ReportError, why):
                    results.load_live(path)
            with self.assertRaisesRegex(results.ReportError, "cannot read"):
                results.load_live(os.path.join(folder, "none.json"))


class ElementsTest(unittest.TestCase):
    def test_each_element_has_experiments_or_says_why_not(self):
        for paper in elements.PAPERS:
            for element in paper.elements:
                self.assertTrue(element.experiments or element.note, element.label)

    def test_all_figures_and_tables_of_the_papers_are_there(self):
        wanted = {"AQuA": (10, 0), "DSFQ": (14, 1), "VD": (8, 0), "BAA": (7, 3), "Stonehenge": (5, 4)}
        for paper in elements.PAPERS:
            found = {"igure": set(), "able": set()}
            for element in paper.elements:
                for kind, first, last, others in re.findall(r"(igure|able)s? (\d+)(?: to (\d+))?((?:, \d+)*)", element.label):
                    found[kind] |= set(range(int(first), int(last or first) + 1)) | {int(n) for n in re.findall(r"\d+", others)}
            for kind, count in zip(("igure", "able"), wanted[paper.key]):
                self.assertEqual(found[kind], set(range(1, count + 1)), f"{paper.key} {kind}")


class PageTest(unittest.TestCase):
    def page(self, live=None):
        sim, seed = results.load_sim(io.StringIO(document(
            experiment("E2", "DSFQ figure 8", check("a < b"), figures=[FIGURE]),
            experiment("E48", "I-35", check("replays")))))
        return page.Page(sim, seed, live or results.load_live(None), lambda figure, key: f"<svg>{key}</svg>").html()

    def test_has_every_element_and_what_is_beyond(self):
        text = self.page()
        for paper in elements.PAPERS:
            for element in paper.elements:
                self.assertIn(f'<h3 id="{page.anchor(paper, element)}">', text)
        self.assertIn("seed 7", text)
        self.assertIn("a &lt; b", text)
        self.assertIn("about &lt;it&gt;", text)
        self.assertIn("<svg>E2-1</svg>", text)
        self.assertIn("E3 was not run", text)
        self.assertLess(text.index('id="beyond"'), text.index("replays"))
        self.assertIn("No live results were given", text)

    def test_live_rows_stand_beside_with_their_own_expectation(self):
        text = self.page(live_of(line("E2", "g, MiB/s", 19.5, 20, True), line("elsewhere.py", "worst", 1.02, 1),
                                 {"experiment": "E42", "figure": "writers", "curve": "c1", "x_label": "s", "y_label": "MiB/s",
                                  "x": [0, 1], "y": [40, 41]}))
        self.assertIn("<td>g, MiB/s</td><td>20</td><td></td><td>19.5</td>", text)
        self.assertIn("elsewhere.py", text)
        self.assertIn("<svg>E42-1</svg>", text)
        self.assertNotIn("No live results were given", text)

    def test_links_lead_somewhere(self):
        text = self.page()
        for target in re.findall(r'href="#([^"]+)"', text):
            self.assertIn(f'id="{target}"', text)

    def test_numbers(self):
        self.assertEqual([page.number(v) for v in (None, 0.12345, 12345.6, -2.5)], ["", "0.1235", "12,346", "−2.5"])
        self.assertEqual([page.bound(*b) for b in ((None, None), (1, None), (None, 2), (1, 2), (3, 3))],
                         ["", "≥ 1", "≤ 2", "1 … 2", "3"])


class MainTest(unittest.TestCase):
    def run_main(self, text, *more):
        with tempfile.TemporaryDirectory() as folder:
            sim, out = os.path.join(folder, "sim.json"), os.path.join(folder, "out.html")
            with open(sim, "w") as file:
                file.write(text)
            said = io.StringIO()
            with contextlib.redirect_stderr(said):
                code = report.main(["--sim", sim, "--output", out, *(m.replace("DIR", folder) for m in more)])
            page_text = ""
            if os.path.exists(out):
                with open(out) as file:
                    page_text = file.read()
            return code, said.getvalue(), page_text, sorted(os.listdir(folder))

    @unittest.skipIf(plots is None, "python3-matplotlib is not installed")
    def test_draws_the_same_page_twice_and_files(self):
        text = document(experiment("E2", "DSFQ figure 8", check("a"), figures=[FIGURE, FIGURE]))
        first = self.run_main(text, "--plots", "DIR/plots", "--plot-format", "svg")
        self.assertEqual(first[:2], (0, ""))
        self.assertIn("plots", first[3])
        self.assertEqual(first[2], self.run_main(text)[2])
        ids = re.findall(r'\bid="([^"]+)"', first[2])
        self.assertEqual(len(ids), len(set(ids)), "an id is there twice")
        for address in re.findall(r'(?:src|href)="([^"#][^"]*)"', first[2]):
            self.fail(f"the page wants '{address}'")
        self.assertNotIn("@import", first[2])

    @unittest.skipIf(plots is None, "python3-matplotlib is not installed")
    def test_an_experiment_of_a_paper_that_no_element_names_is_an_error(self):
        code, said, _, _ = self.run_main(document(experiment("E99", "BAA figure 9", check("a"))))
        self.assertEqual(code, 1)
        self.assertIn("that no element names (elements.py): E99", said)

    @unittest.skipIf(plots is None, "python3-matplotlib is not installed")
    def test_a_figure_without_series_is_an_error(self):
        code, said, _, _ = self.run_main(document(experiment("E2", "DSFQ figure 8", check("a"))))
        self.assertEqual(code, 1)
        self.assertIn("E2 is Figure 8 of a paper and draws nothing", said)

    @unittest.skipIf(plots is None, "python3-matplotlib is not installed")
    def test_what_is_no_document_is_an_error(self):
        self.assertEqual(self.run_main("{}")[0], 1)


if __name__ == "__main__":
    unittest.main()
