"""What is written to what is said: titles, money, numbers, dashes, roman numerals. Pure.

Called just before a sentence goes to the voice. The timeline and the search keep the written form.
"""

from __future__ import annotations

import re
from functools import cache

_TITLES = {
    "Mr": "Mister", "Mrs": "Missus", "Ms": "Miz", "Dr": "Doctor", "Messrs": "Messers",
    "Rev": "Reverend", "Hon": "Honourable", "Capt": "Captain", "Col": "Colonel", "Gen": "General",
    "Lieut": "Lieutenant", "Lt": "Lieutenant", "Sgt": "Sergeant", "Prof": "Professor",
    "Esq": "Esquire", "Mme": "Madame", "Mlle": "Mademoiselle", "Vol": "Volume", "viz": "namely",
    "etc": "et cetera", "Jr": "Junior", "Sr": "Senior",
}  # fmt: skip
_TITLE = re.compile(rf"\b({'|'.join(_TITLES)})\.")
_SAINT = re.compile(r"\bSt\.(?= ?[A-Z])")
_STREET = re.compile(r"\bSt\.")
_NUMBERED = re.compile(r"\bNo\. ?(?=\d)")
_WORDS = (
    (re.compile(r"&c\b\.?"), "et cetera"),
    (re.compile(r"\bi\. ?e\."), "that is"),
    (re.compile(r"\be\. ?g\."), "for example"),
    (re.compile(r"\s&\s"), " and "),
)
_POUNDS = re.compile(r"£ ?(\d[\d,]*)(?:\.(\d\d))?(?: ?(\d+) ?s\.)?(?: ?(\d+) ?d\.)?")
_SHILLINGS = re.compile(r"\b(\d+) ?s\.(?: ?(\d+) ?d\.)?|\b(\d+) ?d\.(?=\W|$)")
_ORDINAL = re.compile(r"\b(\d{1,4})(st|nd|rd|th)\b")
_YEAR = re.compile(r"(?<![\d,.£$])\b(1[1-9]\d\d)\b(?![,.]?\d)")
_NUMBER = re.compile(r"(?<![\w.])\d{1,3}(?:,\d{3})+\b|(?<![\w.])\d{1,9}\b(?![.,]\d)")
_HEADING = re.compile(
    r"^((?:chapter|book|part|volume|letter|stave|canto|act|scene|section) )?"
    r"([IVXLCDM]+)(?=$|[.:,—–-])",
    re.IGNORECASE,
)
_KING = re.compile(
    r"\b(Henry|Edward|George|William|Charles|James|Richard|Louis|Napoleon|Pope \w+) "
    r"([IVX]+)\b(?!\.)"
)
_ROMAN = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}
_ROMAN_SHAPE = re.compile(r"M{0,3}(CM|CD|D?C{0,3})(XC|XL|L?X{0,3})(IX|IV|V?I{0,3})")
_DASH = re.compile(r"\s*(?:--+|[—–―]+)\s*")
_UNSAID = re.compile(r"[_*#|~^<>{}\\\[\]=+@•†‡§¶]+")
_SPACE = re.compile(r"\s+")


def spoken(text: str, *, heading: bool = False) -> str:
    """``text`` as a voice should say it; empty when there is nothing to say. ``heading``: a
    chapter's title.
    """
    if heading:
        text = _part_by_part(text)
    text = _KING.sub(lambda found: f"{found[1]} the {_say(roman(found[2]), 'ordinal')}", text)
    text = _SAINT.sub("Saint", _TITLE.sub(lambda found: _TITLES[found[1]], text))
    text = _NUMBERED.sub("number ", _STREET.sub("Street", text))
    for pattern, said in _WORDS:
        text = pattern.sub(said, text)
    text = _SHILLINGS.sub(_shillings, _POUNDS.sub(_pounds, text))
    text = _ORDINAL.sub(lambda found: _say(int(found[1]), "ordinal"), text)
    text = _YEAR.sub(lambda found: _say(int(found[1]), "year"), text)
    text = _NUMBER.sub(lambda found: _say(int(found[0].replace(",", "")), "cardinal"), text)
    text = _UNSAID.sub(" ", _DASH.sub(", ", text))
    text = "".join(
        character for character in text if character.isprintable() and ord(character) < 0x1F000
    )
    text = _SPACE.sub(" ", text).strip(" ,")
    return text if any(character.isalnum() for character in text) else ""


def roman(text: str) -> int:
    """The number a roman numeral means; 0 when it is none."""
    text = text.upper()
    if not text or not _ROMAN_SHAPE.fullmatch(text):
        return 0
    values = [_ROMAN[letter] for letter in text]
    following = [*values[1:], 0]
    return sum(
        -value if value < after else value for value, after in zip(values, following, strict=True)
    )


def _part_by_part(text: str) -> str:
    return ". ".join(_HEADING.sub(_heading, part) for part in text.split(". "))


def _heading(found: re.Match[str]) -> str:
    number = roman(found[2])
    return f"{found[1] or 'Chapter '}{_say(number, 'cardinal')}" if number else found[0]


def _pounds(found: re.Match[str]) -> str:
    pounds = int(found[1].replace(",", ""))
    parts = [f"{_say(pounds, 'cardinal')} {'pound' if pounds == 1 else 'pounds'}"]
    if found[2] and int(found[2]):
        parts.append(_say(int(found[2]), "cardinal"))
    parts += _small(found[3], found[4])
    return _joined(parts) + (" " if found[0].endswith(" ") else "")


def _shillings(found: re.Match[str]) -> str:
    return _joined(_small(found[1], found[2] or found[3]))


def _small(shillings: str | None, pence: str | None) -> list[str]:
    parts = []
    if shillings:
        parts.append(
            f"{_say(int(shillings), 'cardinal')} shilling{'s' if int(shillings) != 1 else ''}"
        )
    if pence:
        number = int(pence)
        parts.append(
            "one penny"
            if number == 1
            else f"{_say(number, 'cardinal')}{'pence' if number < 13 else ' pence'}"
        )
    return parts


def _joined(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


@cache
def _say(number: int, how: str) -> str:
    from num2words import num2words

    return str(num2words(number, to=how))
