"""The values of options that commands share."""

from pathlib import Path

import pytest

from reproduce.commands.options import Choices
from reproduce.errors import InputError


def test_the_data_option_gives_a_folder_per_dataset():
    several = {"cub200", "cars196"}
    choices = Choices(data=["cub200=birds", "cars196=cars=old"])
    assert choices.root_of("cub200", several) == Path("birds")
    assert choices.root_of("cars196", several) == Path("cars=old")
    assert choices.root_of("sop", several) is None
    assert Choices(data=["birds"]).root_of("cub200", {"cub200"}) == Path("birds")
    assert Choices().root_of("cub200", {"cub200"}) is None
    with pytest.raises(InputError, match=r"--data birds: name the dataset as in --data cars196=FOLDER --data cub200"):
        Choices(data=["birds"]).root_of("cub200", several)
