"""Which folders are parts of one dataset, such as `train` and `test`, and no beginnings or ends of classes' names."""

import os
import re
from collections.abc import Collection, Mapping, Sequence

from protocols.datasets.listing import composed

_MOST_PARTS = 4
"""Folders that hold folders of the same names are parts of one dataset if they are so few."""

_TRAINED = (
    "train|training|trainings|trainval|trn|development|base|background|seen|known|support|learn|learning|lern"
    "|entrainement|entraînement|apprentissage|entrenamiento|entrenar|treino|treinamento|addestramento|apprendimento"
    "|opleiding|trainen|träning|trening|treningowe|træning|trénink|koulutus|eğitim|latih|pelatihan"
    "|обучение|обучающая|тренировка|تدريب|训练|訓練|学習|훈련|학습"
)
_TESTED = (
    "test|tests|testing|tst|teste|testi|val|valid|validate|validation|validierung|validierungs|dev|eval|evaluation"
    "|novel|unseen|unknown|query|queries|gallery|enroll|enrollment|probe|holdout|heldout|prueba|pruebas|probar"
    "|validacion|validación|validação|validazione|validering|validatie|évaluation|evaluación|avaliação|walidacja|testowe|doğrulama"
    "|uji|pengujian|тест|тестовая|валидация|проверка|اختبار|测试|測試|验证|検証|評価|テスト|테스트|검증|평가"
)
_NEUTRAL = "fold|split|subset|partition|part"
_OF_DATA = (
    "set|sets|data|dataset|image|images|img|imgs|pic|pics|picture|pictures|photo|photos|crop|crops|cropped|resized"
    "|sample|samples|class|classes|jpg|jpeg|png|full|large|small|mini|tiny|daten|datensatz|menge|bild|bilder"
    "|集|数据|データ|用|데이터|세트"
)
_KINDS = {
    kind: re.compile(f"(meta)?({words})({_OF_DATA})?")
    for kind, words in (("train", _TRAINED), ("test", _TESTED), ("any", _NEUTRAL))
}
_OR_IN_SHORT = {
    kind: re.compile(f"({_KINDS[kind].pattern})|{short}")
    for kind, short in (("train", "tra?"), ("test", "t[es]|v[al]"))
}
"""These, and `imagesTr` or `Te` in short. Alone a short one could be another word, such as the code of a language."""
_BESIDE = re.compile(f"{_OF_DATA}|[a-z]")
"""Words that stand beside that of a part."""


def parts_among(class_names: Sequence[str]) -> dict[str, set[str]]:
    """Return folders that look like parts of one dataset, with what each holds below it; none if no folders do.

    They are those whose names say so (`training_set`, `val2018`, `images_background`), at any depth: all folders beside
    one another, also in short (`Tr`, `Te`), or some that train and some that test. So are few folders that hold classes
    of the same names.
    """
    shared = os.path.commonpath(class_names or [""])
    beside: dict[str, dict[str, set[str]]] = {}
    for name in class_names:
        path = name.split("/")
        for depth in range(len(path)):
            outer = beside.setdefault("/".join(path[:depth]), {})
            outer.setdefault("/".join(path[: depth + 1]), set()).add("/".join(path[depth + 1 :]))
    for parent, folders in sorted(beside.items()):
        if found := _by_name(folders, is_outermost=parent == shared):
            return {outer: folders[outer] for outer in sorted(found)}
    return {outer: beside[shared][outer] for outer in sorted(_by_content(beside.get(shared, {})))}


def _by_name(folders: Mapping[str, set[str]], *, is_outermost: bool) -> Collection[str]:
    # An outermost folder of images is a class of any name: `train` beside `bus`. In a class, `train` is no class.
    kinds: dict[str, set[str]] = {}
    named_alike: dict[tuple[str, ...], list[str]] = {}
    for outer, inner in folders.items():
        if inner != {""} or not is_outermost:
            found, others = _kinds_of(outer.rpartition("/")[2])
            if found:
                kinds[outer] = found
                named_alike.setdefault(others, []).append(outer)
    for outers in named_alike.values():
        if len(outers) > 1 and {"train", "test"} <= set().union(*(kinds[outer] for outer in outers)):
            return outers
    short = [_kinds_of(outer.rpartition("/")[2], _OR_IN_SHORT)[0] for outer, inner in folders.items() if inner != {""}]
    if all(short) and len(short) == len(folders) > 1 and {"train", "test"} <= set().union(*short):
        return folders
    plain = named_alike.get((), [])
    return plain if len(plain) == len(folders) > 1 and all(inner != {""} for inner in folders.values()) else ()


def _kinds_of(name: str, words: Mapping[str, re.Pattern[str]] = _KINDS) -> tuple[set[str], tuple[str, ...]]:
    """Return which kinds of parts a folder's name says, and its words that say nothing of parts or data."""
    kinds, others = set[str](), []
    for word in _words(name):
        found = {kind for kind, known in words.items() if known.fullmatch(word)}
        kinds |= found
        if not found and not _BESIDE.fullmatch(word):
            others.append(word)
    return kinds, tuple(others)


def _words(name: str) -> list[str]:
    """Return the words of a folder's name in small letters: `trainImages2018` has train and images."""
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", composed(name))
    return re.findall(r"[^\W\d_]+", apart.lower())


def _by_content(folders: Mapping[str, set[str]]) -> Collection[str]:
    held = {outer: inner for outer, inner in folders.items() if inner != {""}}
    most = max(held.values(), key=len, default=set())
    alike = len(held) <= _MOST_PARTS and all(2 * len(one & most) > len(one) for one in held.values())
    return held if len(held) > 1 and alike else ()
