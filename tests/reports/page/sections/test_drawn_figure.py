"""The files of a page's figures."""

import re

import pytest

from reports.page.sections.drawn_figure import file_name


@pytest.mark.parametrize("name", ["../../etc/x", "a/b", "..", "", "ä b", "tiny"])
def test_names_stay_in_their_folder(name):
    made = file_name(name)
    assert re.fullmatch(r"[\w-][\w.-]*", made)
