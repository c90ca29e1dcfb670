"""The images and the setup that most tests here are about."""

import pytest

from protocols.datasets.splits import mlrc_split
from protocols.setup import Setup
from tests.support.toys import conditions, pattern_dataset


@pytest.fixture(scope="session")
def dataset(tmp_path_factory):
    return pattern_dataset(tmp_path_factory.mktemp("patterns"))


@pytest.fixture(scope="session")
def setup(dataset):
    return Setup(dataset, mlrc_split(16), 4, conditions(), seed=5)
