"""The page: all of it in one file, and no text of anybody's as markup."""

import json
import re
from html.parser import HTMLParser

from regard.tasks.plots import AttentionMap, html_page
from tests.tasks.plots.drawings import drawing

EVIL = '</script><script>alert("x")</script>'


class Tags(HTMLParser):
    """Every tag with its attributes, and what stands in each script."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data: str) -> None:
        if self.lasttag == "script" and self.scripts:
            self.scripts[-1] += data


def page(source: list[str], target: list[str]) -> Tags:
    found = drawing(source, target, ["decoder.1"])
    tags = Tags()
    tags.feed(html_page(AttentionMap("what & <who>", "a legend", source, target, found.maps)))
    return tags


def test_texts_are_data_and_come_back_whole() -> None:
    source, target = ["a<b", EVIL, "שלום", "日本"], ["&amp;", "it's", "\u2028"]
    tags = page(source, target)
    data, script = tags.scripts
    known = json.loads(data)
    assert known["source"] == source
    assert known["target"] == target
    assert known["title"] == "what & <who>"
    assert "alert" not in script
    assert [tag for tag, _ in tags.found].count("script") == 2


def test_nothing_comes_from_elsewhere() -> None:
    text = html_page(drawing(["a", "b"], ["c", "d"]))
    addresses = [a for a in re.findall(r"https?://[^\"' ]+", text) if "w3.org" not in a]
    assert addresses == []
    for tag, attributes in page(["a"], ["b"]).found:
        assert tag not in {"link", "img", "iframe"}
        assert "src" not in attributes
        assert "href" not in attributes


def test_every_word_has_its_weights() -> None:
    known = json.loads(page(["a", "b", "c"], ["d", "e"]).scripts[0])
    (reading,) = known["maps"]
    assert reading["name"] == "decoder.1"
    assert [len(row) for row in reading["weights"]] == [3, 3]


def test_every_reading_can_be_chosen_and_the_threshold_is_the_given_one() -> None:
    tags = Tags()
    tags.feed(html_page(drawing(["a"], ["b"], ["decoder.0", "decoder.1/head.3"]), threshold=0.35))
    known = json.loads(tags.scripts[0])
    assert [each["name"] for each in known["maps"]] == ["decoder.0", "decoder.1/head.3"]
    assert known["threshold"] == 0.35


def test_each_text_knows_its_direction() -> None:
    known = json.loads(page(["אבא", "קרא", ""], ["father", "read"]).scripts[0])
    assert known["direction"] == {"source": "rtl", "target": "ltr"}
    assert known["order"] == {"source": [2, 1, 0], "target": [0, 1]}
    assert known["source"] == ["אבא", "קרא", "∎"]
