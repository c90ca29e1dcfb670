"""A folder of features: what is read, what is refused, and what the first look leaves for the next."""

import io
import os
import pickle

import numpy as np
import pytest

from protocols.datasets import feature_files
from protocols.datasets.folder import list_folder
from tests.support.feature_files import opened_features, some_features, write_features
from tests.support.image_folders import paint, refused

LABELS = np.repeat(np.arange(16), 4)


@pytest.fixture
def folder(tmp_path):
    return write_features(tmp_path / "data", some_features(), LABELS)


def assert_refused(folder, *words):
    with refused(*words):
        opened_features(folder, folder / "cache")


@pytest.mark.parametrize("kind", [np.float16, np.float32])
def test_rows_come_as_float32_in_the_order_of_the_file(folder, tmp_path, kind):
    features = some_features().astype(kind)
    np.save(folder / "features.npy", features)
    dataset = opened_features(folder, tmp_path / "cache")
    rows = dataset.images.take(np.asarray([5, 0]))
    assert rows.dtype == np.float32
    assert np.array_equal(rows, features[[5, 0]].astype(np.float32))
    assert dataset.n_classes == 16
    assert dataset.trainval_classes == 8


@pytest.mark.parametrize(
    "ordered",
    [
        [str(number) for number in range(-3, 13)],
        sorted(f"bird {number}" for number in range(16)),
        [*(f"a/{number}" for number in (0, 1, 10, 2)), *(f"a-{number}" for number in (0, 10, 2, 3)), *"bcdefghi"],
    ],
)
def test_images_and_their_features_have_one_order_of_classes(folder, tmp_path, ordered):
    mixed = ordered[::2] + ordered[1::2]
    np.save(folder / "labels.npy", np.asarray(mixed)[LABELS])
    assert opened_features(folder, tmp_path / "cache").class_names == tuple(ordered)
    for name in mixed:
        paint(tmp_path / "images" / name / "0.png", 0)
    assert list_folder(tmp_path / "images").class_names == tuple(ordered)


def test_a_letter_with_an_accent_may_be_written_in_two_ways(folder, tmp_path):
    accents = [("caf\u00e9 " if row % 2 else "cafe\u0301 ") + str(label) for row, label in enumerate(LABELS)]
    np.save(folder / "labels.npy", np.asarray(accents))
    assert opened_features(folder, tmp_path / "d").n_classes == 16


def test_a_table_gives_labels_and_file_names(folder, tmp_path):
    lines = [f"image_{row}.jpg,class {label:02}" for row, label in enumerate(LABELS)]
    (folder / "labels.csv").write_text("\n".join(["file,label", *lines]))
    dataset = opened_features(folder, tmp_path / "cache")
    assert dataset.names[:2] == ("image_0.jpg", "image_1.jpg")
    assert dataset.class_names[3] == "class 03"
    assert np.array_equal(dataset.images.labels, LABELS)


def test_the_second_look_does_not_copy_the_file_again(folder, tmp_path, monkeypatch):
    first = opened_features(folder, tmp_path / "cache")
    monkeypatch.setattr(np, "save", lambda *_: pytest.fail("the file was copied again"))
    assert opened_features(folder, tmp_path / "cache").fingerprint == first.fingerprint


def test_changed_features_or_labels_change_the_fingerprint(folder, tmp_path):
    first = opened_features(folder, tmp_path / "cache").fingerprint
    np.save(folder / "labels.npy", LABELS[::-1])
    second = opened_features(folder, tmp_path / "cache").fingerprint
    np.save(folder / "features.npy", some_features(seed=1))
    os.utime(folder / "features.npy", (1, 1))
    assert len({first, second, opened_features(folder, tmp_path / "cache").fingerprint}) == 3


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e20, 1e-30])
def test_the_first_row_without_a_norm_is_named(folder, value, monkeypatch):
    monkeypatch.setattr(feature_files, "_PART_BYTES", 400)
    features = some_features()
    features[41] = value
    np.save(folder / "features.npy", features)
    assert_refused(folder, "features.npy", "row 41 has the norm")


@pytest.mark.parametrize(
    ("features", "words"),
    [
        (some_features().astype(np.float64), ("float64", "astype")),
        (some_features()[:, 0], ("shape (64,)", "one row per image")),
        (some_features()[:60], ("64 labels for 60 rows", "labels.npy")),
        (some_features()[:, :0], ("shape (64, 0)",)),
    ],
)
def test_features_of_a_wrong_form_are_refused(folder, features, words):
    np.save(folder / "features.npy", features)
    assert_refused(folder, *words)


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ([*LABELS[:-1], 16], ("class '16' has only one row",)),
        (LABELS * 0, ("only one class found",)),
        (LABELS / 2, ("float64", "whole numbers or texts")),
        (LABELS[:, None], ("shape (64, 1)", "one label per row")),
        (LABELS.astype(str).astype(object), ("labels.npy", "Python objects, as pandas keeps texts", "astype(str)")),
    ],
)
def test_labels_that_cannot_be_used_are_refused(folder, labels, words):
    np.save(folder / "labels.npy", labels)
    assert_refused(folder, *words)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("name,class\na,1\n", ("must name the column label",)),
        ("file,label\n" + "a,1\n" * 63 + "b,\n", ("line 65 has no label",)),
        ("file,label,label\n" + "a,1,2\n" * 64, ("names the column label twice",)),
        ("file,label\n" + "a,1\n" * 3 + "a,1,x\n", ("line 5 has 3 cells", "2 columns")),
        ("file,label\n,1\n", ("line 2 has no file",)),
        ('file,label\n"a,1\n' + "a,1\n" * 63, ("not a CSV file",)),
    ],
)
def test_a_table_that_cannot_be_used_is_refused(folder, text, words):
    (folder / "labels.csv").write_text(text)
    assert_refused(folder, "labels.csv", *words)


def torn_files():
    buffer, archive = io.BytesIO(), io.BytesIO()
    np.save(buffer, some_features())
    np.savez(archive, some_features())
    whole = buffer.getvalue()
    cut = {f"cut to {length}": whole[:length] for length in (0, 60, len(whole) - 1)}
    cut["negative"] = whole.replace(b"'shape': (", b"'shape': (-").replace(b" \n", b"\n")
    return cut | {"archive": archive.getvalue(), "text": b"no array"}


@pytest.mark.parametrize("file", ["features.npy", "labels.npy"])
@pytest.mark.parametrize("content", torn_files().values(), ids=torn_files().keys())
def test_a_torn_file_is_refused_in_one_line(folder, file, content):
    (folder / file).write_bytes(content)
    assert_refused(folder, f"{file}: ")


@pytest.mark.parametrize("part", [400, 2**26])
def test_columns_one_after_another_are_read_as_rows(folder, tmp_path, monkeypatch, part):
    """As pandas often gives them to numpy.save."""
    monkeypatch.setattr(feature_files, "_PART_BYTES", part)
    first = opened_features(folder, tmp_path / "cache")
    np.save(folder / "features.npy", np.asfortranarray(some_features()))
    dataset = opened_features(folder, tmp_path / "other")
    assert np.array_equal(dataset.images.take(np.arange(64)), some_features())
    assert dataset.fingerprint == first.fingerprint


def test_equal_and_constant_rows_are_counted(folder, tmp_path):
    features = some_features()
    features[1], features[2], features[63] = features[0], 1, features[5]
    np.save(folder / "features.npy", features)
    dataset = opened_features(folder, tmp_path / "cache")
    assert dataset.oddities(range(8, 16)) == (
        "1 group of rows that are equal but of several classes (row 5 = row 63), 1 of them in training and in test; "
        "1 group of equal rows within a class (row 0 = row 1); 1 row of one value (row 2)"
    )


def test_rows_are_known_by_their_values(folder, tmp_path):
    halves = some_features().astype(np.float16)
    np.save(folder / "features.npy", halves)
    first = opened_features(folder, tmp_path / "cache").contents
    np.save(folder / "features.npy", halves.astype(np.float32)[::-1])
    second = opened_features(folder, tmp_path / "cache").contents
    assert first["sha256"].tolist() == second["sha256"].tolist()[::-1]
    assert first["sha256"].nunique() == 64
    assert first["class"].tolist() == [str(label) for label in LABELS]


def test_missing_files_are_named(folder):
    (folder / "labels.npy").unlink()
    assert_refused(folder, "neither labels.csv nor labels.npy")
    (folder / "features.npy").unlink()
    assert_refused(folder, "features.npy: no such file")


def test_a_run_keeps_its_features_if_the_file_changes(folder, tmp_path):
    images = opened_features(folder, tmp_path / "cache").images
    np.save(folder / "features.npy", some_features()[::-1])
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(images)).take(np.arange(2)), some_features()[:2])
    (folder / "features.npy").unlink()
    np.testing.assert_array_equal(images.take(np.arange(64)), some_features())
