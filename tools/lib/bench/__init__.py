"""tools/bench: WeirFS beside what bounds it, measured in one run. See README.md in this folder."""
