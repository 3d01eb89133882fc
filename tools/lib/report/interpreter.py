"""The package python3-matplotlib is for the system's Python, which need not be the first one in PATH."""
import importlib.util
import os
import sys

SYSTEM = "/usr/bin/python3"
TRIED = "WEIR_SYSTEM_PYTHON"  # set once it was, so that it is tried once


def prefer_one_with_matplotlib():
    """Begins this program anew under the system's Python when this one has no matplotlib. Requires: nothing was read yet."""
    if importlib.util.find_spec("matplotlib") or TRIED in os.environ or not os.path.exists(SYSTEM):
        return
    os.execve(SYSTEM, [SYSTEM, *sys.argv], {**os.environ, TRIED: "1"})
