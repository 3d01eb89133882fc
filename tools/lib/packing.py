#!/usr/bin/env python3
"""Which source files can be compiled as one: those of which none says a name that another defines
for itself. `packing.py SIZE FILE...` prints a group of at most SIZE files per line."""

import pathlib
import re
import sys

# What a file defines for itself, at the beginning of a line or as a constant.
DEFINED = re.compile(r"^(?:struct|class|enum(?: class)?|using) (?!namespace)(\w+)"
                     r"|^\w[\w:<>,&*\[\] ]*?[ &*](\w+)(?=\()|\b(k[A-Z]\w+)(?= ?[={])", re.MULTILINE)
NO_NAMES = re.compile(r'//.*|"[^"\n]*"')
WORD = re.compile(r"\w+")


def defined(text):
    return {word for words in DEFINED.findall(text) for word in words if word}


def said(text):
    return set(WORD.findall(NO_NAMES.sub("", text)))


def packed(paths, size, also_said=True):
    """Groups of at most `size` paths, of which no two define the same name. With `also_said` none
    even says a name of another, so that nothing can mean something else than it does alone."""
    groups = []
    for path in paths:
        text = pathlib.Path(path).read_text(encoding="utf-8")
        mine = defined(text)
        words = said(text) if also_said else mine
        for group, defined_there, said_there in groups:
            if len(group) < size and not mine & said_there and not words & defined_there:
                break
        else:
            group, defined_there, said_there = [], set(), set()
            groups.append((group, defined_there, said_there))
        group.append(path)
        defined_there |= mine
        said_there |= words
    return [group for group, _, _ in groups]


if __name__ == "__main__":
    for files in packed(sys.argv[2:], int(sys.argv[1])):
        print(";".join(files))
