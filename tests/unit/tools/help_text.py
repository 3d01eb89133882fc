"""What the programs say of themselves by --help, taken apart. Programs: WEIR_BIN, or build/release/bin of this repository."""
import functools
import os
import re
import subprocess

REPO = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")
BIN = os.environ.get("WEIR_BIN", os.path.join(REPO, "build", "release", "bin"))


@functools.lru_cache(maxsize=None)
def output(*words):
    done = subprocess.run([os.path.join(BIN, words[0]), *words[1:]], capture_output=True, text=True, timeout=30, check=False)
    return done.returncode, done.stdout, done.stderr


def help_of(*words):
    code, text, _ = output(*words, "--help")
    assert code == 0, f"{words} --help: exit {code}"
    return text


def block(text, title):
    found = re.search(rf"^{title}:\n(.*?)(?:\n\n|\Z)", text, re.M | re.S)
    return found.group(1).splitlines() if found else []


def heads(text, title):
    """Of each entry what stands before its explanation; continued lines are indented deeper."""
    return [line[2:] for line in block(text, title) if re.match(r"  \S", line)]


def options_of(text):
    """As they are typed: `  -o,--output TEXT:{text,json} ...` has two, `  --fsck{space} ...` one."""
    return {re.sub(r"\{.*", "", word) for head in heads(text, "Options") for word in head.split()[0].split(",")
            if word.startswith("-")}


def verbs_of(*words):
    """Those that do something: `class` only has verbs of its own."""
    below = [head.split()[0] for head in heads(help_of(*words), "Subcommands")]
    return [verb for name in below for verb in verbs_of(*words, name)] if below else [words]


def words_of_choice(text):
    """What may be said where --help lists it: `on|off`, `{table,json}`."""
    chosen = set()
    for line in block(text, "Options"):
        # Behind two spaces the explanation begins, whose words are no choice.
        for part in re.split(r"\s{2,}", line.strip())[0].split()[1:]:
            listed = re.search(r"\{(.*)\}", part)
            words = listed.group(1).split(",") if listed else part.split("|") if "|" in part else []
            chosen |= {word for word in words if re.fullmatch(r"[a-z][a-z-]+", word)}
    return chosen


def mount_options(text):
    """`[no]x` is x and nox; what stands in brackets explains."""
    listed = re.search(r"Options behind -o:(.*?), and what mount\(8\)", text, re.S).group(1)
    while "(" in listed:
        listed = re.sub(r"\([^()]*\)", "", listed)
    names = set()
    for word in listed.split(","):
        name = word.strip().partition("=")[0]
        names |= {name[4:], "no" + name[4:]} if name.startswith("[no]") else {name}
    return names
