"""Draws the page of `weir-sim report`, which calls this: papers, simulator and live results side by side."""
import argparse
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import elements  # noqa: E402
import interpreter  # noqa: E402
import page as pages  # noqa: E402
import results  # noqa: E402


def parsed(argv):
    parser = argparse.ArgumentParser(prog="report", description=__doc__)
    parser.add_argument("--sim", required=True, metavar="FILE", help="of `weir-sim run -o json`; - is the standard input")
    parser.add_argument("--live", metavar="FILE", help="what WEIR_RESULTS collected")
    parser.add_argument("--output", required=True, metavar="FILE")
    parser.add_argument("--plots", metavar="DIR")
    parser.add_argument("--plot-format", choices=("pdf", "png", "svg"), default="pdf")
    return parser.parse_args(argv)


def check_elements(sim):
    """The list of elements and the experiments must fit each other."""
    sources = tuple(f"{paper.key} {kind}" for paper in elements.PAPERS for kind in ("figure", "table"))
    unlisted = sorted(e for e, about in sim.items() if e not in elements.of_papers() and about["source"].startswith(sources))
    if unlisted:
        raise results.ReportError(f"experiments of the papers that no element names (elements.py): {' '.join(unlisted)}")
    for element in (element for paper in elements.PAPERS for element in paper.elements if "igure" in element.label):
        ran = [sim[e] for e in element.experiments if e in sim]
        if ran and not any(e["figures"] for e in ran):
            raise results.ReportError(f"{' '.join(element.experiments)} is {element.label} of a paper and draws nothing")


def make(arguments):
    try:
        import plots
    except ImportError as error:
        raise results.ReportError(f"{error}; on Debian: apt-get install python3-matplotlib") from error
    if arguments.sim == "-":
        sim, seed = results.load_sim(sys.stdin)
    else:
        with open(arguments.sim) as file:
            sim, seed = results.load_sim(file)
    check_elements(sim)
    page = pages.Page(sim, seed, results.load_live(arguments.live), plots.as_svg)
    text = page.html()
    with open(arguments.output, "w") as file:
        file.write(text)
    if arguments.plots:
        pages.save_plots(page, arguments.plots, arguments.plot_format, plots.save)


def main(argv):
    try:
        make(parsed(argv))
    except results.ReportError as error:
        print(f"report: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"report: cannot use '{error.filename}': {error.strerror}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    interpreter.prefer_one_with_matplotlib()
    sys.exit(main(sys.argv[1:]))
