"""Columns that name attributes of people which laws often protect."""

import re
from collections.abc import Iterable

_WORDS = (
    "race ethnicity ethnic nationality citizenship sex gender religion disability "
    "disabled pregnant pregnancy marital birthday birthdate dob"
)
_PROTECTED = frozenset(_WORDS.split())
# "account_age" and "age_of_car" are no attributes of a person.
_AGE = re.compile(
    r"((customer|patient|person|client|applicant|member|employee)_)?"
    r"age(_(group|band|years|in_years))?"
)


def protected_columns(names: Iterable[str]) -> list[str]:
    """Return the columns whose name has a word such as sex, or is a person's age."""
    return [name for name in names if _is_protected(name)]


def _is_protected(name: str) -> bool:
    separated = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name)  # maritalStatus
    words = re.findall(r"[a-z]+", separated.lower())
    return not _PROTECTED.isdisjoint(words) or bool(_AGE.fullmatch("_".join(words)))


def advice_on(columns: list[str]) -> str:
    """Return a sentence about protected columns that become features."""
    named = ", ".join(columns)
    verb = "is an attribute" if len(columns) == 1 else "are attributes"
    return (
        f"{named} {verb} of people that laws often protect: a list for people may not "
        "depend on it; leave it out with drop, or name it in allow"
    )
