"""What daemons show over HTTP: metrics and the web page."""
import json
import socket
import urllib.error
import urllib.request

from weirtest import check


def get(address, path, method="GET"):
    """Status and body of a page, whatever its status."""
    request = urllib.request.Request(f"http://{address}{path}", method=method)
    try:
        with urllib.request.urlopen(request, timeout=30) as reply:
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def samples(address):
    """{'name{labels}': value} of a metrics page."""
    status, text = get(address, "/metrics")
    check(status == 200, f"/metrics of {address}: {status}")
    lines = (line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    return {name: float(value) for name, value in lines}


def troubles(web):
    """What the web page says is wrong."""
    return json.loads(get(web, "/api/v1/cluster")[1])["troubles"]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"
