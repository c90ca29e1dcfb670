"""Figure data and the files that artifacts lie in."""

import numpy as np

from results.records.artifacts import FigureData, figure_data_path


def figure_data(value: float) -> FigureData:
    return FigureData(
        test_embeddings=np.full((4, 2), value, dtype=np.float32),
        test_labels=np.arange(4),
        spectrum=np.ones(2, dtype=np.float32),
        query_images=np.zeros((1, 8, 8, 3), dtype=np.uint8),
        neighbour_images=np.zeros((1, 2, 8, 8, 3), dtype=np.uint8),
        correct=np.ones((1, 2), dtype=np.bool_),
        class_names=np.asarray(["a"]),
        neighbour_names=np.asarray([["a", "b"]]),
        class_scores=np.ones(1, dtype=np.float32),
        test_names=np.asarray(["a"]),
    )


def test_an_exhibit_is_read_as_it_was_saved(tmp_path):
    path = figure_data_path(tmp_path, "abc")
    figure_data(0.5).save(path)
    loaded = FigureData.load(path)
    for name, value in vars(figure_data(0.5)).items():
        np.testing.assert_array_equal(getattr(loaded, name), value)
