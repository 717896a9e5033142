"""The page: all of it in one file, and no text of anybody's as markup."""

import json
import re
from html.parser import HTMLParser

import torch

from regard.tasks.pictures import as_page

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
    weights = torch.rand(len(target), len(source)).softmax(-1)
    tags = Tags()
    tags.feed(as_page("what & <who>", source, target, {"decoder.1": weights}, "a legend"))
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
    weights = torch.eye(2)
    text = as_page("t", ["a", "b"], ["c", "d"], {"decoder": weights}, "")
    addresses = [a for a in re.findall(r"https?://[^\"' ]+", text) if "w3.org" not in a]
    assert addresses == []
    for tag, attributes in page(["a"], ["b"]).found:
        assert tag not in {"link", "img", "iframe"}
        assert "src" not in attributes
        assert "href" not in attributes


def test_every_word_has_its_weights() -> None:
    known = json.loads(page(["a", "b", "c"], ["d", "e"]).scripts[0])
    (reading,) = known["readings"]
    assert reading["name"] == "decoder.1"
    assert [len(row) for row in reading["weights"]] == [3, 3]
