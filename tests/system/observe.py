#!/usr/bin/env python3
"""Being watched: metrics of every daemon, the dashboard and alert rules that name them, the web page and its JSON."""
import json
import os
import re
import shutil
import threading

from pages import free_port, get, samples, troubles
from weirtest import BIN, MIB, REPO, Cluster, Embedded, check, main, run, wait_until

MONITORING = os.path.join(REPO, "tools", "monitoring")


def names(page):
    return {sample.split("{")[0] for sample in page}


def write(path, size):
    with open(path, "wb") as file:
        file.write(os.urandom(size))
        file.flush()
        os.fsync(file.fileno())


def watched_cluster(lab, web):
    system = Cluster(lab, osds=2, extra=["--metrics", "--web", web])
    for name, argv in (("gold", ("--latency", "500ms@95%", "--limit", "900MiB/s")), ("each", ())):
        system.osdctl("class", "create", name, *argv)
    system.osdctl("reserve", "gold", "--bandwidth", "20MiB/s")
    system.osdctl("reserve", "each", "--bandwidth", "5MiB/s", "--scope", "osd")
    os.mkdir(f"{system.mnt}/db")
    os.setxattr(f"{system.mnt}/db", "user.qos.class", b"gold")
    write(f"{system.mnt}/db/file", 24 * MIB)
    return system


def every_daemon_has_metrics(lab):
    web = free_port()
    system = watched_cluster(lab, web)
    status = json.loads(run(f"{BIN}/weir-dev", "status", "--dir", system.dir, "-o", "json").stdout)
    where = {daemon["name"]: daemon["metrics"] for daemon in status["daemons"]}
    with open(f"{system.dir}/prometheus.json") as targets:
        check({t["labels"]["daemon"]: t["targets"][0] for t in json.load(targets)} == where, "the list for Prometheus")
    pages = {name: samples(address) for name, address in where.items()}

    # What osdctl says, the pages say; nothing is going on now that could change it in between.
    stat = json.loads(system.osdctl("stat", "gold", "-o", "json").stdout)
    for osd in stat["osds"]:
        page, row, labels = pages[f"osd.{osd['id']}"], osd["classes"][0], f'{{osd="{osd["id"]}",class="gold"}}'
        check(page[f"weir_osd_class_served_bytes_total{labels}"] == row["served_bytes"], f"osd.{osd['id']}: {row}")
        check(page[f"weir_osd_class_latency_seconds_count{labels}"] == row["served_ops"], "every request has a latency")
        check(page[f'weir_osd_unmetered_bytes_total{{osd="{osd["id"]}"}}'] == 0, "bytes past the pipeline")
    check(sum(row["served_bytes"] for osd in stat["osds"] for row in osd["classes"]) >= 24 * MIB, f"too little: {stat}")
    mds, mnt = pages["mds.0"], pages["mnt.0"]
    check(mds['weir_class_reservation_bytes_per_second{class="gold",scope="cluster"}'] == 20 * MIB, "the promise")
    check(mds['weir_class_reservation_bytes_per_second{class="each",scope="osd"}'] == 5 * MIB, "the promise per OSD")
    check(mds['weir_mds_osd_up{osd="1"}'] == 1 and mds["weir_mds_sessions"] == 1, "the MDS's view")
    check(mnt['weir_client_class_transferred_bytes_total{class="gold"}'] >= 24 * MIB, "the mount's bytes")
    check(mnt["weir_client_mds_connected"] == 1, "the mount's MDS")

    # A class that is removed takes its series with it.
    system.osdctl("release", "each")
    system.osdctl("class", "rm", "each")
    wait_until(lambda: not any('"each"' in sample for name in where for sample in samples(where[name])),
               "the series of a removed class to end", timeout=20)
    dashboard_and_alerts_name_what_there_is(set().union(*(names(page) for page in pages.values())))
    the_page_shows_it(lab, system, web)

    system.dev("kill", "osd.1")
    wait_until(lambda: samples(where["mds.0"])['weir_mds_osd_up{osd="1"}'] == 0, "the MDS to miss an OSD")
    wait_until(lambda: any(text.startswith("osd.1 is down") for text in troubles(web)), "the page to say so")
    system.dev("start", "osd.1")
    check(samples(where["osd.1"])["weir_osd_map_epoch{osd=\"1\"}"] > 0, "no metrics after a restart")


def dashboard_and_alerts_name_what_there_is(there_is):
    """Not only the pages' names: a histogram's family is named by its parts, and PromQL needs balanced brackets."""
    with open(f"{MONITORING}/grafana-dashboard.json") as file:
        dashboard = json.load(file)
    expressions = [t["expr"] for panel in dashboard["panels"] for t in panel.get("targets", [])]
    expressions += [variable["query"]["query"] for variable in dashboard["templating"]["list"]
                    if variable["type"] == "query"]
    with open(f"{MONITORING}/alerts.yml") as file:
        alerts = file.read()
    expressions += re.findall(r"expr: ?(?:>\n)?((?:.|\n)*?)\n +(?:for|labels):", alerts)
    check(len(expressions) > 40 and alerts.count("alert:") == alerts.count("expr:"), "the expressions are not found")
    for expression in expressions:
        for name in re.findall(r"\b(?:weir|process)_[a-z0-9_]+", expression):
            check(name in there_is, f"{name} of `{expression}` is on no page")
        check(all(expression.count(a) == expression.count(b) for a, b in ("()", "{}", "[]")), f"brackets: {expression}")


def the_page_shows_it(lab, system, web):
    """The JSON of the page, and the page itself in a browser when there is one."""
    def of_gold():
        document = json.loads(get(web, "/api/v1/cluster?since=0")[1])
        gold = next((one for one in document["classes"] if one["class"] == "gold"), None)
        if gold is None or not gold["promised_bytes_per_s"]:
            return None  # the last look at the cluster is older than the class or its reservation
        rows = [dict(zip(document["columns"], row)) for sample in document["samples"] for row in sample["rows"]
                if row[0] == gold["id"]]
        return document, gold, rows

    document, gold, _ = wait_until(of_gold, "the page to know the class", timeout=20)
    check(document["version"] == 1 and document["health"] == "ok", f"health: {document['troubles']}")
    check([osd["up"] for osd in document["osds"]] == [True, True], f"OSDs: {document['osds']}")
    check(gold["promised_bytes_per_s"] == 20 * MIB and gold["latency_bound_us"] == 500_000, f"gold: {gold}")
    write(f"{system.mnt}/db/more", 16 * MIB)

    def moved():
        rows = of_gold()[2]
        return rows if sum(row["served_bytes_per_s"] for row in rows) > 0 else None
    rows = wait_until(moved, "the page to show what gold gets", timeout=20)
    check(any(row["p99_us"] >= row["p50_us"] > 0 for row in rows), f"latencies: {rows}")

    status, page = get(web, "/")
    check(status == 200 and "<title>WeirFS</title>" in page, f"the page: {status}")
    check(not re.search(r"(src|href)=[\"']?(https?:)?//", page), "the page loads something from elsewhere")
    browser = shutil.which("chromium")
    if browser is None:
        check("CI" not in os.environ, "no chromium: tools/install-deps brings it")
        lab.show("  (no chromium here: the page's script was not run)")
        return
    done = run(browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
               f"--user-data-dir={lab.path('browser')}", "--enable-logging=stderr", "--virtual-time-budget=4000",
               "--dump-dom", f"http://{web}/", timeout=120, env={"HOME": lab.dir})
    errors = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    check(not errors, f"the page's script complains: {errors[:3]}")
    check('<span id="health" class="pill ok" role="status">healthy</span>' in done.stdout, "no health in the browser")
    card = re.search(f'<article class="card" data-class="{gold["id"]}">.*?</article>', done.stdout, re.DOTALL)
    check(card is not None, f"no card of gold in the browser:\n{done.stdout[-3000:]}")
    check(card.group().count('<svg class="chart"') == 3 and "promised 20 MiB/s" in card.group(), "its charts")
    drawn = re.findall(r'<path [^>]*\bd="(M[^"]*)"', card.group())
    check(len(drawn) >= 5 and "NaN" not in card.group(), f"its lines: {drawn}")


def an_embedded_one_shows_all_on_one_page(lab):
    metrics, web = free_port(), free_port()
    system = Embedded(lab, "--osds", "2", "--osd-size", "256MiB", "--token-rate", "500MiB/s", "--metrics", metrics, "--web",
                      web)
    write(f"{system.mnt}/file", MIB)
    page = samples(metrics)
    for name in ('weir_osd_capacity_bytes{osd="1"}', "weir_mds_inodes", "weir_client_map_epoch",
                 'weir_daemon_answers{daemon="osd"}', 'weir_daemon_answers{daemon="mds"}'):
        check(page.get(name, 0) > 0, f"{name} is not on the page")
    check(page['weir_client_class_transferred_bytes_total{class="best-effort"}'] >= MIB, "the mount's bytes")
    check(get(metrics, "/")[0] == 404 and get(web, "/metrics")[0] == 404, "each has its own page only")
    check(get(web, "/api/v1/cluster", "POST")[0] == 405, "something can be sent to it")
    wait_until(lambda: json.loads(get(web, "/api/v1/cluster")[1])["health"] == "ok", "the first look", timeout=20)

    def refused(argv, code, *words):
        done = run(*argv, ok=None, timeout=60)
        check(done.returncode == code and all(word in done.stderr for word in words), f"{argv}: {done}")

    mds = [f"{BIN}/weir-mds", "--data", lab.path("mds"), "--listen", f"ipc://{lab.path('s')}"]
    osd = [f"{BIN}/weir-osd", "--disk", lab.path("none"), "--mds", "127.0.0.1:1"]
    weirfs = [f"{BIN}/weirfs", "--data", lab.path("other"), lab.path("embedded.mnt2"), "--osd-size", "256MiB",
              "--token-rate", "500MiB/s"]
    os.mkdir(lab.path("embedded.mnt2"))
    refused(mds + ["--metrics", metrics], 1, metrics, "in use")
    refused(mds + ["--web", "0.0.0.0:80"], 2, "--insecure")
    refused(mds + ["--web", "here"], 2, "--web here: write ADDR:PORT")
    refused(osd + ["--metrics", "10.0.0.1:80"], 2, "--insecure")
    refused(weirfs + ["--metrics", metrics], 1, metrics, "in use")
    refused([f"{BIN}/weirfs", "127.0.0.1:1", lab.path("embedded.mnt2"), "--web", web], 2, "--web goes with --data")


def file_on(system, mount, osd):
    """An open file of the class `gold` that lies on this OSD only, through this mount."""
    for i in range(64):
        path = f"{system.mounts[mount]}/db/{mount}.{osd}.{i}"
        file = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_SYNC)
        os.pwrite(file, bytes(MIB), 0)
        if os.getxattr(path, "weir.objects") == f"0:osd.{osd}".encode():
            return file
        os.close(file)
    raise AssertionError(f"no file on osd.{osd}")


def status_tells_of_mounts_that_miss_each_other(lab):
    """A mount for each OSD: nobody knows the class's total, until one of them uses both."""
    system = Cluster(lab, osds=2, mounts=2)
    system.osdctl("class", "create", "gold")
    os.mkdir(f"{system.mnt}/db")
    os.setxattr(f"{system.mnt}/db", "user.qos.class", b"gold")
    files = {0: [file_on(system, 0, 0)], 1: [file_on(system, 1, 1)]}
    more = file_on(system, 1, 0)
    ends = threading.Event()

    def write_all(mount):
        while not ends.is_set():
            for file in files[mount]:
                os.pwrite(file, bytes(MIB), 0)

    def notes():
        return json.loads(system.osdctl("status", "-o", "json").stdout)["notes"]
    loads = [threading.Thread(target=write_all, args=(mount,)) for mount in files]
    try:
        for load in loads:
            load.start()
        said = wait_until(notes, "status to tell of them", timeout=60)
        check(len(said) == 1 and re.search("^class gold: mnt.0 uses only osd.0 and mnt.1 only osd.1: .*stripe_count", said[0]),
              f"the note: {said}")
        check(f"note     {said[0][:40]}" in system.osdctl("status").stdout, "it is not on the screen")
        files[1].append(more)
        wait_until(lambda: not notes(), "status to be content with them", timeout=60)
    finally:
        ends.set()
        for load in loads:
            load.join()
        for file in {*files[0], *files[1], more}:
            os.close(file)


main("observe", every_daemon_has_metrics, an_embedded_one_shows_all_on_one_page,
     status_tells_of_mounts_that_miss_each_other)
