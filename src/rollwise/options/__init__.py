"""Options, declared once: a keyword-only argument says type, bounds and default, the docstring's line says what it is.

`Share`, `Count`, ... are types with bounds. A subclass of `Declared` has what it is given checked against them;
listings, documents and saved states read the same declaration (`options_of`). An error names option, range and value.
"""

from rollwise.options.checks import (
    Range,
    check_ids,
    check_mapping,
    check_name,
    check_number,
    check_options,
    check_text,
    check_whole,
    did_you_mean,
    listed,
    several,
    shown,
)
from rollwise.options.declared import (
    Declared,
    check_fields,
    checked,
    constructor_names,
    keyword_options,
    make,
    make_named,
    options_of,
)
from rollwise.options.option import (
    Count,
    CountFromTwo,
    CountOrZero,
    InnerShare,
    NonEmptyText,
    NotNegative,
    Number,
    Option,
    Positive,
    PositiveShare,
    Share,
    Temperature,
    Weight,
)
from rollwise.options.schedule import Schedule, written

__all__ = [
    "Count",
    "CountFromTwo",
    "CountOrZero",
    "Declared",
    "InnerShare",
    "NonEmptyText",
    "NotNegative",
    "Number",
    "Option",
    "Positive",
    "PositiveShare",
    "Range",
    "Schedule",
    "Share",
    "Temperature",
    "Weight",
    "check_fields",
    "check_ids",
    "check_mapping",
    "check_name",
    "check_number",
    "check_options",
    "check_text",
    "check_whole",
    "checked",
    "constructor_names",
    "did_you_mean",
    "keyword_options",
    "listed",
    "make",
    "make_named",
    "options_of",
    "several",
    "shown",
    "written",
]
