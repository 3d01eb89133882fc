#!/usr/bin/env python3
"""The checks that read code instead of running it: format, headers, tidy.

    tools/lib/lint.py format                   clang-format agrees with every tracked file
    tools/lib/lint.py headers [--jobs N]       every header compiles alone (the build proved the most)
    tools/lib/lint.py tidy [--jobs N] [FILE…]  clang-tidy over the product (tests only by name)

tidy remembers (in build/lint) files that passed and skips them until they, a header they include
or .clang-tidy change. Needs a configured build/release; generated code is never looked at.

Example: tools/lib/lint.py tidy osd/qos/scheduler.cc
"""
import argparse
import concurrent.futures
import hashlib
import json
import pathlib
import shlex
import subprocess
import sys

from packing import packed

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "release"
LINT = ROOT / "build" / "lint"
BATCH_SIZE = 24
IN_BATCH = r"(common|client|osd|mds|tools)/.*\.(h|cc)$"


def tracked(*patterns):
    listing = subprocess.run(["git", "ls-files", "-z", "--", *patterns], cwd=ROOT, check=True,
                             capture_output=True, text=True)
    return [name for name in listing.stdout.split("\0") if name and (ROOT / name).exists()]


def report(failures, total, what):
    for name, output in failures:
        print(f"--- {name}\n{output.strip()}")
    print(f"  {what}: {total - len(failures)} of {total} files are fine")
    return 1 if failures else 0


def in_parallel(jobs, names, check):
    """Runs check(name) -> (ok, output) for every name; returns [(name, output)] of those not ok."""
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        results = pool.map(check, names)
        return [(name, out) for name, (ok, out) in zip(names, results) if not ok]


def run(command):
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors="replace", check=False)
    return done.returncode == 0, done.stdout


def check_format(_):
    names = tracked("*.cc", "*.h")
    ok, output = run(["clang-format-14", "--dry-run", "-Werror", *names])
    if not ok:
        print(output)
        print("  put right by: git ls-files '*.cc' '*.h' | xargs clang-format-14 -i")
        return 1
    print(f"  format: {len(names)} files are fine")
    return 0


def include_flags():
    flags = ["-I", str(ROOT), "-isystem", str(BUILD / "generated")]
    found = subprocess.run(["pkg-config", "--cflags", "fuse3", "libzmq", "liburing", "libisal"],
                           check=True, capture_output=True, text=True)
    return flags + shlex.split(found.stdout)


def proven_by_build():
    """Headers that the .cc of their name includes before anything else stand alone if the build
    passed: nothing comes before these. (Tests and osdctl have a precompiled header, and what has no
    header of its name may be compiled behind others.)"""
    proven = set()
    for name in tracked("*.cc", ":!tests", ":!tools/osdctl"):
        header = name.removesuffix(".cc") + ".h"
        for line in (ROOT / name).read_text().splitlines():
            if line.startswith("#include"):
                if line.split()[1].strip('"') == header:
                    proven.add(header)
                break
    return proven


def check_headers(options):
    flags = include_flags()
    names = options.files or sorted(set(tracked("*.h")) - proven_by_build())

    def alone(name):
        return run(["g++", "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror",
                    "-Wno-missing-field-initializers", *flags, "-include", name, "-x", "c++",
                    "/dev/null"])

    return report(in_parallel(options.jobs, names, alone), len(names), "headers")


def unity_members(path):
    return [pathlib.Path(line.split('"')[1]) for line in path.read_text().splitlines()
            if line.startswith("#include")]


def clean_database():
    """The compile commands without what only gcc understands."""
    entries = json.loads((BUILD / "compile_commands.json").read_text())
    kept = {}
    for entry in entries:
        path = pathlib.Path(entry["file"])
        arguments = shlex.split(entry["command"])
        if path.parent.name == "Unity":  # several files that are compiled as one
            for member in unity_members(path):
                alone = [str(member) if part == str(path) else part for part in arguments]
                entries.append({"directory": entry["directory"], "file": str(member),
                                "command": shlex.join(alone)})
            continue
        if BUILD in path.parents or ROOT not in path.parents:
            continue
        for index, argument in reversed(list(enumerate(arguments))):
            if argument.endswith("cmake_pch.hxx") and arguments[index - 1] == "-include":
                del arguments[index - 1:index + 1]
            elif argument in ("-Winvalid-pch", "-Wshadow=local", "-ffat-lto-objects"):
                del arguments[index]
        kept[str(path.relative_to(ROOT))] = {
            "directory": entry["directory"], "file": entry["file"], "arguments": arguments}
    LINT.mkdir(parents=True, exist_ok=True)
    (LINT / "compile_commands.json").write_text(json.dumps(list(kept.values()), indent=1))
    return kept


def dependencies():
    """Source file -> the project's own files that its object was built from, as ninja noted."""
    listing = subprocess.run(["ninja", "-C", str(BUILD), "-t", "deps"], capture_output=True,
                             text=True, check=False).stdout
    table = {}
    for block in listing.split("\n\n"):
        files = [pathlib.Path(BUILD, line.strip()).resolve() for line in block.splitlines()[1:]]
        own = [f for f in files if ROOT in f.parents and BUILD not in f.parents]
        together = [f for f in files if f.parent.name == "Unity"]
        for source in unity_members(together[0]) if together else own[:1]:
            table[str(source.relative_to(ROOT))] = own
    return table


def fingerprint(name, depends):
    digest = hashlib.sha256((ROOT / ".clang-tidy").read_bytes())
    for path in sorted(set(depends.get(name, [])) | {ROOT / name}):
        digest.update(str(path).encode())
        digest.update(path.read_bytes() if path.exists() else b"")
    return digest.hexdigest()


def tidy_batches(database, names):
    """Files that are compiled alike -> {file that includes some of them: their names}. Those
    files join the compile commands. Names that found no company are in no batch."""
    alike = {}
    for name in names:
        entry = database[name]
        flags, skip = [], False
        for argument in entry["arguments"]:
            if not skip and argument not in ("-c", "-o", entry["file"]):
                flags.append(argument)
            skip = argument == "-o"
        alike.setdefault(tuple(flags), []).append(name)
    batches, entries = {}, list(database.values())
    folder = LINT / "batches"
    folder.mkdir(parents=True, exist_ok=True)
    for flags, members in sorted(alike.items()):
        for part in packed([str(ROOT / name) for name in members], BATCH_SIZE, also_said=False):
            part = [str(pathlib.Path(path).relative_to(ROOT)) for path in part]
            if len(part) == 1:
                continue
            path = folder / (part[0].replace("/", "-"))
            path.write_text("".join(f'#include "{ROOT / name}"\n' for name in part))
            batches[str(path)] = part
            entries.append({"directory": str(BUILD), "file": str(path),
                            "arguments": [*flags, "-c", str(path)]})
    (LINT / "compile_commands.json").write_text(json.dumps(entries, indent=1))
    return batches


def check_tidy(options):
    database = clean_database()
    wanted = set(options.files or tracked("*.cc", ":!tests"))
    names = sorted(name for name in database if name in wanted)
    depends = dependencies()
    passed_path = LINT / "passed.json"
    passed = json.loads(passed_path.read_text()) if passed_path.exists() else {}
    prints = {name: fingerprint(name, depends) for name in names}
    todo = [name for name in names if passed.get(name) != prints[name]]

    def tidy(name):
        ok, output = run(["clang-tidy-14", "--quiet", "-p", str(LINT), name])
        lines = [line for line in output.splitlines() if "warnings generated" not in line]
        return ok, "\n".join(lines)

    # Several files of one library as one: most of the time goes into the headers they share. What
    # is found there is looked for again file by file, so that a report never owes to the company.
    batches = tidy_batches(database, todo)
    suspicious = [name for name, _ in in_parallel(
        options.jobs, sorted(batches), lambda batch: run(
            ["clang-tidy-14", "--quiet", "-p", str(LINT), f"--header-filter={IN_BATCH}",
             "--checks=-bugprone-suspicious-include", batch]))]
    again = sorted(set(todo) - {name for batch, members in batches.items()
                                if batch not in suspicious for name in members})
    failures = in_parallel(options.jobs, again, tidy)
    bad = {name for name, _ in failures}
    passed.update({name: prints[name] for name in todo if name not in bad})
    passed_path.write_text(json.dumps(passed, indent=0))
    return report(failures, len(names), f"tidy ({len(todo)} looked at anew)")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("check", choices=["format", "headers", "tidy"])
    parser.add_argument("files", nargs="*", help="only these, relative to the root")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    checks = {"format": check_format, "headers": check_headers, "tidy": check_tidy}
    return checks[options.check](options)


if __name__ == "__main__":
    sys.exit(main())
