"""Small datasets on disk."""

import pytest

from tests.support.image_folders import make_cub, make_folder


@pytest.fixture
def folder(tmp_path):
    return make_folder(tmp_path / "photos")


@pytest.fixture
def cub(tmp_path):
    return make_cub(tmp_path / "CUB_200_2011")
