#!/usr/bin/env python3
"""tools/lib/fuse_rings.py on files that stand for the kernel's parameter: who switches, and what is put back."""
import os
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "tools", "lib"))

from fuse_rings import Rings  # noqa: E402


class RingsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.parameter, self.note = os.path.join(folder.name, "enable_uring"), os.path.join(folder.name, "note")
        self.set("N")

    def set(self, value):
        with open(self.parameter, "w", encoding="ascii") as file:
            file.write(f"{value}\n")

    def get(self):
        with open(self.parameter, encoding="ascii") as file:
            return file.read().strip()

    def rings(self):
        rings = Rings(self.parameter, self.note)
        rings.on()
        return rings

    def test_what_was_there_is_put_back(self):
        for before in "NY":
            self.set(before)
            rings = self.rings()
            self.assertEqual(self.get(), "Y")
            rings.off()
            self.assertEqual((self.get(), os.path.exists(self.note)), (before, False))

    def test_the_last_of_several_puts_it_back_whoever_came_first(self):
        first, second = self.rings(), self.rings()
        first.off()
        self.assertEqual(self.get(), "Y")
        second.off()
        self.assertEqual(self.get(), "N")

    def test_what_one_that_was_killed_left_is_put_back_by_the_next(self):
        killed = os.fork()
        if killed == 0:
            self.rings()
            os._exit(0)  # Without off(): only the kernel takes its lock away.
        os.waitpid(killed, 0)
        self.assertEqual(self.get(), "Y")
        self.rings().off()
        self.assertEqual(self.get(), "N")

    def test_off_without_on_and_twice_does_nothing(self):
        rings = Rings(self.parameter, self.note)
        rings.off()
        rings.on()
        rings.off()
        self.set("Y")
        rings.off()
        self.assertEqual(self.get(), "Y")

    def test_a_kernel_without_the_switch_is_an_error_of_the_system(self):
        os.unlink(self.parameter)
        self.assertRaises(OSError, self.rings)


if __name__ == "__main__":
    unittest.main()
