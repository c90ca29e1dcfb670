"""The images that most trainings here are about."""

import pytest

from tests.support.toys import pattern_dataset


@pytest.fixture(scope="session")
def dataset(tmp_path_factory):
    return pattern_dataset(tmp_path_factory.mktemp("patterns"))
