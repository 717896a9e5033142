"""Some of what `python -m tests.fuzz.memory_files` tries."""

from pathlib import Path

import pytest

from tests.fuzz import memory_files


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("start", range(4))
def test_a_damaged_file_is_refused_or_as_it_was(start: int, tmp_path: Path) -> None:
    seen = memory_files.run(60, tmp_path, start)
    refused = sum(number for (_, result), number in seen.items() if result == "refused")
    assert refused > 30
