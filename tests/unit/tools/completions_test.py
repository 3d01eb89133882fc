#!/usr/bin/env python3
"""What bash offers at TAB, with a line of which bash itself says where the cursor is: all that --help has, and no more."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from help_text import BIN, REPO, heads, help_of, mount_options, options_of  # noqa: E402

SCRIPT = os.path.join(REPO, "tools", "completions", "weirfs.bash")
# Each line of stdin is typed and TAB pressed: the answers on one line, with a tab behind each.
ASK = """
. "$0"
while IFS= read -r COMP_LINE; do
  COMP_POINT=${#COMP_LINE} COMPREPLY=()
  "$(complete -p "${COMP_LINE%% *}" | sed 's/.*-F \\([^ ]*\\) .*/\\1/')" "${COMP_LINE%% *}"
  printf '%s\\t' "${COMPREPLY[@]}"
  echo
done
"""
NOBODY = {"pid": 0, "start_time": 0}
PROGRAMS = ("weirfs", "weir-mds", "weir-osd", "weir-dev", "weir-sim", "osdctl")


def offered(*lines, breaks=" =:"):
    """Of each line a list."""
    path = f"{BIN}:{os.environ['PATH']}"
    done = subprocess.run(["bash", "--norc", "-c", f"COMP_WORDBREAKS={breaks!r}{ASK}", SCRIPT], input="".join(f"{line}\n" for line in lines),
                          env={**os.environ, "PATH": path}, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode != 0 or done.stderr:
        raise AssertionError(f"exit {done.returncode}: {done.stderr}")
    return [[word for word in line.split("\t") if word] for line in done.stdout.splitlines()]


def all_verbs(*words):
    """Also those that only have others below."""
    yield words
    for head in heads(help_of(*words), "Subcommands"):
        yield from all_verbs(*words, head.split()[0])


class CompletionsTest(unittest.TestCase):
    maxDiff = None

    def test_verbs_and_options_are_those_of_help(self):
        verbs = [verb for program in PROGRAMS for verb in all_verbs(program)]
        options = offered(*(" ".join(verb) + " -" for verb in verbs))
        below = offered(*(" ".join(verb) + " " for verb in verbs))
        for verb, dashed, words in zip(verbs, options, below, strict=True):
            self.assertEqual(set(dashed), options_of(help_of(*verb)) | options_of(help_of(verb[0])), verb)
            known = [head.split()[0] for head in heads(help_of(*verb), "Subcommands")]
            if known:
                self.assertEqual(words, known, verb)

    def test_values_are_those_of_help(self):
        table = {
            "osdctl class set gold --flow ": ["user", "cgroup", "opener", "none"],
            "osdctl osd set all --profile dsfq-h": ["dsfq-hybrid", "dsfq-hybrid-h"],
            "osdctl class set gold --type=l": ["latency"],
            "osdctl class ls -o ": ["table", "json"],
            "osdctl completion ": ["bash", "zsh"],
            "weirfs --log ": ["trace", "debug", "info", "warn", "error", "off"],
            "weir-osd --metering ": ["true", "false"],
            "weir-osd --fsck=": ["space", "deep"],
            "weir-mds --fsck=d": ["deep"],
            "weir-sim run E30": ["E30", "E30b"],
            "weir-sim run q": ["quick"],
            "weirfs -o uring=o": ["on", "off"],
            "weirfs -o class=gold,sy": ["gold,sync_close"],
            "weir-dev up --mount-options ro,sy": ["ro,sync_close"],
        }
        for (line, wanted), found in zip(table.items(), offered(*table), strict=True):
            self.assertEqual(found, wanted, line)
        self.assertEqual({word.partition("=")[0] for word in offered("weirfs -o ")[0]}, mount_options(help_of("weirfs")))

    def test_where_bash_cuts_no_words_all_of_them_is_offered(self):
        self.assertEqual(offered("weir-mds --fsck=d", "weirfs -o class=gold,sy", breaks=" "), [["--fsck=deep"], ["class=gold,sync_close"]])

    def test_values_are_no_verbs(self):
        self.assertEqual(offered("osdctl --cluster class rule ", "osdctl --cluster=class rule r", "weir-osd --fsck --rep",
                                 "weir-osd --fsck --repair --rea"), [["add", "ls", "rm", "test"], ["rm"], ["--repair"], ["--ready-file"]])

    def test_paths_where_help_wants_one(self):
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(f"{folder}/some_dir")
            with open(f"{folder}/some_file", "w", encoding="ascii"):
                pass
            both, one = [f"{folder}/some_dir", f"{folder}/some_file"], [f"{folder}/some_dir"]
            table = {"weirfs --log-file": both, "weir-osd --disk": both, "weir-sim scenario": both, "weirfs --data": one,
                     "weirfs tcp://h:1": one, "osdctl --cluster": one, "weir-mds --data": one, "osdctl reserve gold --bandwidth": []}
            for (line, wanted), found in zip(table.items(), offered(*(f"{line} {folder}/some" for line in table)), strict=True):
                self.assertEqual(sorted(found), wanted, line)

    def test_daemons_of_a_cluster_that_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(f"{folder}/weir-dev.json", "w", encoding="ascii") as file:
                json.dump({"version": 2, "endpoint": "tcp://127.0.0.1:1", "osd_size": 0, "token_rate": "", "mds": NOBODY, "mounts": [],
                           "osds": [{"disk": "osd.0.img", "is_image": True, "images": [], "formatted": True, "process": NOBODY}]}, file)
            self.assertEqual(offered(f"weir-dev kill --dir {folder} ", "weir-dev kill "), [["mds.0", "osd.0"], []])

    def test_osds_of_this_machine(self):
        with tempfile.TemporaryDirectory() as folder:
            os.environ["WEIR_CONFIG_DIR"] = folder
            self.addCleanup(os.environ.pop, "WEIR_CONFIG_DIR")
            self.assertEqual(offered("osdctl config show "), [["mds", "mount"]])
            for name in ("mds", "osd-sdb", r"osd-a\x2db", "else"):
                with open(f"{folder}/{name}.toml", "w", encoding="ascii"):
                    pass
            self.assertEqual(offered("osdctl config show ", "osdctl config show osd-s"),
                             [["mds", "mount", r"osd-a\\x2db", "osd-sdb"], ["osd-sdb"]])

    def test_osdctl_prints_it_and_zsh_asks_bash(self):
        printed = {shell: subprocess.run([f"{BIN}/osdctl", "completion", shell], capture_output=True, text=True, timeout=60, check=True).stdout
                   for shell in ("bash", "zsh")}
        with open(SCRIPT, encoding="ascii") as file:
            self.assertEqual(printed["bash"], file.read())
        if not shutil.which("zsh"):
            return
        # In the place of zsh's own, at the end of a line of these words, and telling what there is.
        ask = """
            compdef() { :; }
            compadd() { local -a found; found=(${(P)@[-1]}); print -l -- $found; }
            eval "$0"
            words=("$@") CURRENT=$# PREFIX="${@[-1]}"
            _weir_programs"""
        for line, wanted in ((("osdctl", "class", "cr"), ["create"]), (("weirfs", "-o", "writeb"), ["writeback_cache"]),
                             (("osdctl", "class", "set", "gold", "--flow", ""), ["user", "cgroup", "opener", "none"])):
            done = subprocess.run(["zsh", "-f", "-c", ask, printed["zsh"], *line], capture_output=True, text=True, timeout=60, check=False,
                                  env={**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"})
            self.assertEqual((done.stdout.split(), done.stderr), (wanted, ""), line)


if __name__ == "__main__":
    unittest.main()
