"""tools/bench: WeirFS beside what bounds it, measured in one run. README.md in this folder says how."""
