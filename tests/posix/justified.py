"""Where a mount may differ from the local filesystem; README.md says why."""
import dataclasses
import re


@dataclasses.dataclass(frozen=True)
class Row:
    case: str
    label: str  # regular expression
    here: str  # regular expression of what the mount shows
    on: str = "any"  # or: shared, exclusive

    def matches(self, label, here):
        return re.fullmatch(self.label, label) is not None and re.fullmatch(self.here, str(here)) is not None


JUSTIFIED = (
    Row("names.special_files", "read the null device", "EACCES"),
    Row("ranges.allocate_errors", "collapse|insert", "ENOTSUP|EOPNOTSUPP"),
    Row("set_ids.a_chown_of_nothing_beside_a_writer", "(open|written), by (member|stranger.*|root)(, what is left)?",
        r"\('ok', '0o6777'\)|0o6777"),
    Row("attributes.times_move", "truncate same", r"\[\(False, False\)\]", on="exclusive"),
)
