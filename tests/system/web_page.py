#!/usr/bin/env python3
"""The web page at every width, with few and many classes, in both schemes: boxes stay within theirs and off each other, words are legible."""
import http.server
import json
import os
import re
import shutil
import threading

from weirtest import REPO, check, main, run

PAGE = os.path.join(REPO, "common", "monitor", "web", "index.html")
WIDTHS = (320, 360, 400, 480, 560, 640, 768, 900, 1024, 1150, 1300, 1440, 1600, 1920, 2560)
# How many classes are shown at which widths.
FRAMES = [(4, width) for width in WIDTHS] + [(count, width) for count in (1, 50) for width in (320, 900, 2560)]
GIB = 1 << 30


def flows(i):
    """One, many or no users of a class, with names as long as they may be."""
    one = {"who": "uid 4294967295", "client": "w" * 64, "share": 0.93, "requests_per_s": 123456.7, "bytes_per_s": 2 * GIB, "light": False}
    long = one | {"who": "pid 4194304 (cgroup /" + "/".join(["a-slice-of-some-length.slice"] * 8) + ")", "client": None, "light": True}
    users = ([one], [long, one, one, one, long], [])[i % 3]
    return {"window_s": 7.5, "users_seen": len(users), "openers_seen": 5, "users": users, "openers": [long, one] if users else []}


def name_flows(i):
    """The same of operations on names."""
    def asked(one):
        return {key: one[key] for key in ("who", "client", "share", "light")} | {"operations_per_s": 12345.6, "waiting": 1234, "wait_us": 87654321}
    of_data = flows(i)
    return of_data | {part: [asked(one) for one in of_data[part]] for part in ("users", "openers")}


def document(count):
    """What a busy and unhealthy cluster of so many classes answers: long names, large numbers, idle and broken classes."""
    names = ["gold", "W" * 64, "a-class-whose-name-has-sixty-four-characters-as-many-as-may-be-it", "best-effort"]
    names = (["best-effort"] if count == 1 else names) + [f"tenant-{i}-of-many" for i in range(count - len(names))]
    classes = [{"class": name, "id": 16 + i if name != "best-effort" else 0, "system": False, "weight": 1.5,
                "promised_bytes_per_s": 1234567890 if i < 2 else 0, "promised_iops": 0, "latency_bound_us": 20000,
                "limit_bytes_per_s": 999 * GIB if i == 1 else None, "violation_seconds": 86400 * i, "deadline_misses": i,
                "flow": "cgroup" if i == 1 else "user", "flows": flows(i), "names": name_flows(i + 1)}
               for i, name in enumerate(names)]
    osds = [{"id": i, "up": i != 1, "answers": i == 0, "profile": "unified", "capacity_bytes": 18 << 40,
             "used_bytes": 17 << 40, "base_token_rate_bytes_per_s": 3 * GIB, "token_rate_bytes_per_s": 3 * GIB,
             "device_bytes_per_s": 2 * GIB} for i in range(3)]
    columns = ["id", "demand_bytes_per_s", "served_bytes_per_s", "served_per_s", "queued_ops", "p50_us", "p99_us"]
    samples = [{"number": n, "at_ms": 1_700_000_000_000 + 1000 * n,
                "rows": [[c["id"], 2 * GIB, GIB + n * 10_000_000, 123_456, 789, 900 + n, 45_000 + 99 * n] for c in classes]}
               for n in range(1, 301)]
    return {"version": 1, "started_ms": 1, "at_ms": samples[-1]["at_ms"], "cluster_uuid": "01234567-89ab-cdef", "epoch": 123456,
            "health": "unhealthy", "troubles": ["osd.1 is down (last seen at tcp://storage-node-0001.example.org:7371)"],
            "sessions": 1234, "inodes": 123456789, "classes": classes, "osds": osds, "columns": columns, "samples": samples}


# One frame for each width and scheme, so that one browser looks at all of them. It writes what is wrong into its body.
HARNESS = """<!doctype html><meta charset="utf-8"><body><pre id="wrong"></pre><script>
"use strict";
const FRAMES = %s;
const wrong = new Set();
const nameOf = one => one.tagName.toLowerCase() + (one.id ? "#" + one.id : one.classList.length ? "." + one.classList[0] : "");
function channel(value) { value /= 255; return value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4; }
function brightness(color) {
  const parts = (color.match(/[0-9.]+/g) || [0, 0, 0]).map(Number);
  const [r, g, b] = color.startsWith("color(") ? parts.slice(-3).map(part => part * 255) : parts;
  return 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
}
function behind(view, one) {
  for (; one; one = one.parentElement) {
    const color = view.getComputedStyle(one).backgroundColor;
    if (color !== "rgba(0, 0, 0, 0)" && color !== "transparent") return color;
  }
  return "rgb(255, 255, 255)";
}
function look(frame, say) {
  const view = frame.contentWindow, page = view.document, root = page.documentElement;
  if (root.scrollWidth > root.clientWidth) say("scrolls sideways: " + root.scrollWidth + " of " + root.clientWidth);
  const shown = one => one.getClientRects().length > 0 && view.getComputedStyle(one).visibility !== "hidden";
  const scrolls = one => ["auto", "scroll"].includes(view.getComputedStyle(one).overflowX);
  const within = (one, box) => {
    const inner = one.getBoundingClientRect(), outer = box.getBoundingClientRect();
    return inner.left >= outer.left - 1 && inner.right <= outer.right + 1 && inner.top >= outer.top - 1 &&
      inner.bottom <= outer.bottom + 1;
  };
  for (const one of page.querySelectorAll("header *, main *")) {
    if (!shown(one) || one.closest("defs")) continue;
    let outer = one.parentElement;  // what it may not leave
    const bounds = ".tile, .card, .panel, .troubles, header, main, td, th, svg.chart";
    while (outer && !outer.matches(bounds)) outer = outer.parentElement;
    const panel = one.closest(".panel");
    const free = panel && scrolls(panel) && !one.matches("td *, th *");
    if (outer && !free && !within(one, outer)) say(nameOf(one) + " leaves " + nameOf(outer));
    if (one.children.length === 0 && one.textContent.trim() && !one.closest("svg")) {
      const fore = brightness(view.getComputedStyle(one).color), back = brightness(behind(view, one));
      const contrast = (Math.max(fore, back) + 0.05) / (Math.min(fore, back) + 0.05);
      if (contrast < 3) say(nameOf(one) + " has a contrast of " + contrast.toFixed(1));
    }
  }
  for (const group of ["main > *", ".tiles > *", ".tile > *", ".cards > *", ".card > *", ".charts > *", "header > *"]) {
    const boxes = [...page.querySelectorAll(group)].filter(shown).map(one => [one, one.getBoundingClientRect()]);
    for (let i = 0; i < boxes.length; ++i) for (let k = i + 1; k < boxes.length; ++k) {
      const [a, b] = [boxes[i][1], boxes[k][1]];
      if (boxes[i][0].parentElement !== boxes[k][0].parentElement) continue;
      if (a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1) {
        say(nameOf(boxes[i][0]) + " lies over " + nameOf(boxes[k][0]));
      }
    }
  }
  for (const tile of page.querySelectorAll(".tile")) {
    for (const one of tile.children) {
      if (one.scrollWidth > one.clientWidth + 1) say("tile " + tile.textContent + ": cut off");
      if (one.matches(".bar") && one.getBoundingClientRect().height < 4) say("a bar has no height");
    }
  }
}
async function drawn(frame) {
  await new Promise(done => { frame.onload = done; });
  while (!frame.contentDocument.documentElement.dataset.drawn) await new Promise(done => setTimeout(done, 50));
}
async function all() {
  for (const [classes, width] of FRAMES) {
    const frame = document.createElement("iframe");
    frame.style.cssText = `width: ${width}px; height: 1200px; border: 0; display: block`;
    frame.src = `/${classes}/`;
    document.body.append(frame);
    await drawn(frame);
    for (const theme of ["light", "dark"]) {
      frame.contentDocument.documentElement.dataset.theme = theme;
      look(frame, text => wrong.add(`${classes} classes, ${width} ${theme}: ${text}`));
    }
    frame.remove();
  }
  document.getElementById("wrong").textContent = wrong.size ? [...wrong].join("\\n") : "nothing wrong";
}
all().catch(error => { document.getElementById("wrong").textContent = "failed: " + error; });
</script>"""


class Server(http.server.BaseHTTPRequestHandler):
    """The page as it is, a document that never changes, and the frames."""

    def do_GET(self):
        path = self.path.split("?")[0]
        asked = re.fullmatch(r"/(\d+)/(.*)", path)
        if path == "/frames":
            self.answer("text/html", (HARNESS % json.dumps(FRAMES)).encode())
        elif asked and asked[2] == "":
            with open(PAGE, "rb") as file:
                self.answer("text/html", file.read())
        elif asked and asked[2] == "api/v1/cluster":
            self.answer("application/json", json.dumps(document(int(asked[1]))).encode())
        else:
            self.send_error(404)

    def answer(self, kind, body):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def serve(lab):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    lab.on_exit(server.shutdown)
    return f"http://127.0.0.1:{server.server_port}"


def browse(lab, *argv):
    browser = shutil.which("chromium")
    return run(browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
               "--hide-scrollbars", f"--user-data-dir={lab.path('browser')}", "--enable-logging=stderr", *argv, timeout=120,
               env={"HOME": lab.dir})


def boxes_stay_where_they_belong(lab):
    if shutil.which("chromium") is None:
        check("CI" not in os.environ, "no chromium: tools/install-deps brings it")
        lab.show("  (no chromium here: nothing was looked at)")
        return
    site = serve(lab)
    done = browse(lab, "--virtual-time-budget=60000", "--dump-dom", f"{site}/frames")
    found = re.search(r'<pre id="wrong">(.*?)</pre>', done.stdout, re.DOTALL)
    check(found is not None and found.group(1), f"the browser did not finish: {done.stdout[-500:]} {done.stderr[-1000:]}")
    pictures = os.environ.get("WEIR_SCREENSHOTS")  # a directory, for a person to look at
    for classes, width in FRAMES if pictures else ():
        for name, scheme in (("light", 1), ("dark", 0)):
            browse(lab, f"--window-size={width},1500", f"--blink-settings=preferredColorScheme={scheme}",
                   "--virtual-time-budget=3000", f"--screenshot={pictures}/{classes}-{width}-{name}.png", f"{site}/{classes}/")
    check(found.group(1) == "nothing wrong", "\n" + found.group(1))


main("web_page", boxes_stay_where_they_belong)
