#!/usr/bin/env python3
"""The man pages of tools/man against the programs: each option of --help is in its page and each option of a page in --help, verb
by verb; mount options, settings, attributes, and the sections that every page has. Programs: WEIR_BIN."""
import os
import re
import shutil
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from help_text import REPO, help_of, mount_options, options_of, output, verbs_of, words_of_choice  # noqa: E402

MAN = os.path.join(REPO, "tools", "man")
# With verbs: each has its own part of the page, below a heading that names it.
PLAIN = {"weirfs": "weirfs.8", "weir-mds": "weir-mds.8", "weir-osd": "weir-osd.8"}
WITH_VERBS = {"osdctl": "osdctl.8", "weir-dev": "weir-dev.8", "weir-sim": "weir-sim.1"}
# Scripts, which packages install.
HELPERS = {name: os.path.join(REPO, "tools", "weirfs", name) for name in ("mount.weirfs", "umount.fuse.weirfs")}
EVERYWHERE = {"-h", "--help"}
# What the command line alone can say: these name what is to be done, not how.
ACTIONS = {"help", "version", "config", "check-config", "mkfs", "force", "fsck", "repair", "output", "replace", "upgrade", "data"}
SECTIONS = {"NAME", "EXAMPLES", "SEE ALSO"}
SECTIONS_OF_PROGRAMS = SECTIONS | {"SYNOPSIS", "DESCRIPTION", "EXIT STATUS", "FILES"}


class Page:
    def __init__(self, name):
        with open(os.path.join(MAN, name + ".scd"), encoding="utf-8") as file:
            self.text = file.read()
        self.prose = re.sub(r"^```$.*?^```$", "", self.text, flags=re.M | re.S)

    def part(self, heading):
        found = re.search(rf"^{re.escape(heading)}$(.*?)(?=^#{{1,{heading.split()[0].count('#')}}} |\Z)", self.prose, re.M | re.S)
        assert found, f"there is no '{heading}'"
        return found.group(1)

    def sections(self):
        return set(re.findall(r"^# (.*)$", self.prose, re.M))


def bold_options(text):
    """`*--x*`, also of `*--fsck*[=_deep_]`; options of others stand behind their program's name."""
    return set(re.findall(r"\*(--?[a-z][a-z-]*)\*", text))


def defined(text):
    """The names that are explained below their line: `*a*=_X_, *b*`."""
    lines = re.findall(r"^(\*[^\t\n]*)\n\t", text, re.M)
    return {name for line in lines for name in re.findall(r"\*([^*]+)\*", line)}


def pages():
    return sorted(name.removesuffix(".scd") for name in os.listdir(MAN) if name.endswith(".scd"))


class ManPagesTest(unittest.TestCase):
    maxDiff = None

    def same(self, page, said, what):
        self.assertEqual((sorted(said - page), sorted(page - said)), ([], []), f"{what}: (missing in the page, only in the page)")

    def test_options_are_those_of_help(self):
        for program, name in PLAIN.items():
            page = Page(name)
            self.same(bold_options(page.prose), options_of(help_of(program)), name)
            # Explained, and not only named.
            self.same(defined(page.part("# OPTIONS")), options_of(help_of(program)), f"{name}, OPTIONS")

    def test_verbs_and_their_options_are_those_of_help(self):
        for program, name in WITH_VERBS.items():
            page = Page(name)
            parts = {verb: page.part("## " + heading) for heading in re.findall(r"^## (.*)$", page.prose, re.M)
                     for verb in heading.split(", ")}
            verbs = {" ".join(verb): help_of(*verb) for verb in verbs_of(program)}
            self.same(set(parts), set(verbs), f"{name}, verbs")
            of_all = options_of(help_of(program))
            self.assertLessEqual(of_all, bold_options(page.prose), name)
            for verb, said in verbs.items():
                explained = {option for option in defined(parts[verb]) if option.startswith("-")}
                self.same(explained, options_of(said) - EVERYWHERE, f"{name}, {verb}")
                # Those of the program may be named in any verb.
                self.assertLessEqual(bold_options(parts[verb]), options_of(said) | of_all, f"{name}, {verb}: --help has no such option")

    def test_choices_are_named(self):
        for program, name in PLAIN.items():
            for word in words_of_choice(help_of(program)):
                self.assertTrue(f"_{word}_" in Page(name).prose, f"{name}: '{word}' is missing")
        for program, name in WITH_VERBS.items():
            for verb in verbs_of(program):
                headings = [h for h in re.findall(r"^## (.*)$", Page(name).prose, re.M) if " ".join(verb) in h.split(", ")]
                for word in words_of_choice(help_of(*verb)):
                    self.assertTrue(f"_{word}_" in Page(name).part("## " + headings[0]), f"{name}, {verb}: '{word}' is missing")

    def test_mount_options_are_those_of_help(self):
        part = Page("weirfs.8").part("# MOUNT OPTIONS")
        self.same(defined(part), mount_options(help_of("weirfs")), "weirfs.8, MOUNT OPTIONS")
        more = part[part.index("Besides these"):].replace(r"\_", "%")
        of_all = [word.replace("%", "_") for word in re.findall(r"_([%\w]+?)_(?=[ ,.\n])", more)]
        self.assertIn("_netdev", of_all)
        for word, known in [(word, True) for word in of_all] + [("nonsense", False)]:
            said = output("weirfs", "-o", word)[2]  # without a mountpoint it looks at no more than the options
            self.assertEqual("unknown mount option" not in said, known, f"-o {word}: {said}")

    def test_options_of_the_mount_helpers(self):
        for name, script in HELPERS.items():
            said = subprocess.run([script, "--help"], capture_output=True, text=True, check=True).stdout
            named = {"-" + letter for letter in re.search(r"\[-([a-z]+)\]", said).group(1)} | set(re.findall(r"\[(-\w) [A-Z]", said))
            self.same(defined(Page(name + ".8").part("# OPTIONS")), named | EVERYWHERE, name + ".8")

    def test_settings_are_the_options_that_say_how(self):
        page = Page("weirfs.toml.5")
        for program, table, more in (("weir-mds", "mds", {"data"}), ("weir-osd", "osd", set())):
            options = {option[2:] for option in options_of(help_of(program)) if option.startswith("--")}
            keys = {option.replace("-", "_") for option in options - ACTIONS | more}
            self.same(defined(page.part(f"# [{table}]")), keys, f"weirfs.toml.5, [{table}]")
        names = {option[2:].replace("-", "_") for option in options_of(help_of("weirfs")) if option.startswith("--")}
        self.assertLessEqual(defined(page.part("# [mount]")), names | mount_options(help_of("weirfs")), "weirfs.toml.5, [mount]")

    def test_attributes_are_those_of_the_sources(self):
        names, words = set(), []
        for folder, _, files in os.walk(os.path.join(REPO, "mds", "ns")):
            for file in files:
                with open(os.path.join(folder, file), encoding="utf-8") as source:
                    text = source.read()
                names |= set(re.findall(r'= "((?:user\.)?(?:qos|weir)\.[a-z_.]+)"', text))
                words += re.findall(r'\bword == "([a-z_]+)"', text)
        names.remove("user.weir.layout.")
        names |= {"user.weir.layout." + word for word in words}
        self.assertIn("user.weir.layout.tier", names)
        self.same(defined(Page("weirfs-xattrs.7").prose), names, "weirfs-xattrs.7")

    def test_pages_have_their_sections_and_refer_to_what_is_there(self):
        for name in pages():
            page = Page(name)
            wanted = SECTIONS if name.endswith(".7") else SECTIONS_OF_PROGRAMS
            self.assertLessEqual(wanted, page.sections(), name)
            self.assertTrue(page.text.startswith(f"{name[:-2]}({name[-1]}) "), name)
            for other, section in re.findall(r"\*((?:weir|osdctl|mount\.weir)[\w.-]*)\*\((\d)\)", page.prose):
                self.assertIn(f"{other}.{section}", pages(), f"{name} refers to {other}({section})")

    @unittest.skipUnless(shutil.which("scdoc"), "no scdoc")
    def test_pages_can_be_made(self):
        for name in pages():
            with open(os.path.join(MAN, name + ".scd"), "rb") as source:
                done = subprocess.run(["scdoc"], stdin=source, capture_output=True, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, b""), name)
            self.assertIn(b".SH NAME", done.stdout)


if __name__ == "__main__":
    unittest.main()
