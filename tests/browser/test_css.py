"""The colours of every theme, computed from the styles: contrast, and what the night may show."""

from __future__ import annotations

import re
from functools import cache
from itertools import product

import pytest
from tests.helpers import SOURCES

PAGE = SOURCES / "lineclear" / "web" / "page"
TEXT = ("text", "muted", "accent", "ok", "warn", "bad", "stale")
SHAPES = ("edge", "focus", "bar")
GROUNDS = ("bg", "surface", "raised")
THEMES = ("light", "dark", "night")
Colour = tuple[int, int, int]


@cache
def themes() -> dict[str, dict[str, Colour]]:
    css = (PAGE / "app.css").read_text()
    both = dict(re.findall(r"--(\w+): light-dark\((#\w{6}, #\w{6})\);", css))
    night = css.split(':root[data-theme="night"], :host([theme="night"]) {')[1].split("}")[0]
    return {
        "light": {name: rgb(pair.split(", ")[0]) for name, pair in both.items()},
        "dark": {name: rgb(pair.split(", ")[1]) for name, pair in both.items()},
        "night": {name: rgb(one) for name, one in re.findall(r"--(\w+): (#\w{6});", night)},
    }


def rgb(code: str) -> Colour:
    return (int(code[1:3], 16), int(code[3:5], 16), int(code[5:7], 16))


def luminance(colour: Colour) -> float:
    parts = [value / 255 for value in colour]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: Colour, other: Colour) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", THEMES)
def test_every_theme_has_every_colour(theme: str) -> None:
    assert set(themes()[theme]) == {*TEXT, *SHAPES, *GROUNDS, "line", "rail"}


@pytest.mark.parametrize(("theme", "name", "ground"), [*product(THEMES, TEXT, GROUNDS)])
def test_words_can_be_read(theme: str, name: str, ground: str) -> None:
    colours = themes()[theme]
    assert contrast(colours[name], colours[ground]) >= 4.5


@pytest.mark.parametrize(("theme", "name", "ground"), [*product(THEMES, SHAPES, GROUNDS)])
def test_edges_bars_and_focus_can_be_seen(theme: str, name: str, ground: str) -> None:
    colours = themes()[theme]
    assert contrast(colours[name], colours[ground]) >= 3


@pytest.mark.parametrize("theme", THEMES)
def test_a_bar_stands_out_from_its_rail(theme: str) -> None:
    assert contrast(themes()[theme]["bar"], themes()[theme]["rail"]) >= 3


@pytest.mark.parametrize("theme", THEMES)
def test_a_selected_text_and_the_strip_can_be_read(theme: str) -> None:
    assert contrast(themes()[theme]["accent"], themes()[theme]["bg"]) >= 4.5


def test_the_night_is_warm_and_dim() -> None:
    night = themes()["night"]
    for name, (red, _, blue) in night.items():
        assert blue <= 0.65 * red, name
        assert luminance(night[name]) <= luminance(night["focus"]), name
    assert luminance(night["text"]) <= 0.42


def test_nothing_moves_at_night_and_only_the_bar_elsewhere() -> None:
    sheets = [PAGE / "app.css", *(PAGE / "css").glob("*.css")]
    css = re.sub(
        r"/\*.*?\*/", "", "\n".join(sheet.read_text() for sheet in sheets), flags=re.DOTALL
    )
    moving = re.findall(r"(?:transition|animation)[\w-]*: ([^;]+);", css)
    assert sorted(moving) == ["inline-size .3s linear", "none !important", "none !important"]
    assert ':root[data-theme="night"] *' in css
    assert "@keyframes" not in css
    assert "scroll-behavior: smooth" not in css


def test_colours_are_tokens_and_nothing_else() -> None:
    sheets = [PAGE / "app.css", *(PAGE / "css").glob("*.css")]
    for sheet in sheets:
        css = sheet.read_text()
        if sheet.name in ("app.css", "plain.css"):
            css = re.sub(r"^\s*--\w+:.*$", "", css, flags=re.MULTILINE)
            css = re.sub(r"^\s*(--\w+: #\w{6}; ?)+$", "", css, flags=re.MULTILINE)
        assert re.findall(r"#[0-9a-fA-F]{3,8}\b", css) == [], sheet.name


def test_the_theme_colour_of_the_browser_follows_the_ground() -> None:
    script = (PAGE / "theme.js").read_text()
    for theme in THEMES:
        red, green, blue = themes()[theme]["bg"]
        assert f'{theme}: "#{red:02x}{green:02x}{blue:02x}"' in script
