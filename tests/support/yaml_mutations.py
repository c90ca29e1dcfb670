"""Strategies of hypothesis that damage YAML files: values, keys and structure, and the text itself."""

from copy import deepcopy
from typing import Any

import yaml
from hypothesis import strategies as st

EXPERIMENT = """\
title: Every key of an experiment
protocol: mlrc
dataset: {name: cub200, subset: false}
methods: [contrastive, proxy_anchor, ./mine.yaml]
variants:
  - {of: proxy_anchor, key: strict, title: Strict, set: {loss.margin: 0.2}}
sweeps:
  - {of: contrastive, grid: {loss.neg_margin: [0.3, 0.5]}, with: {training.batch_size: [16, 32]}}
trunk: {name: bn_inception, weights: imagenet, batch_norm: training, batch_norm_momentum: 0.1, pooling: average}
embedding_size: 64
images: {resize: 256, crop: 227, area: [0.16, 1.0], ratio: [0.75, 1.33], flip: true, augmentation: faithful}
training:
  batch_size: 32
  iterations_per_epoch: 100
  max_epochs: 10
  validate_every: 2
  patience: 3
  optimizer: {name: SGD, lr: 1.0e-3, weight_decay: 1.0e-4, arguments: {momentum: 0.9}}
  schedule: {milestones: [2, 4], factor: 0.5}
  clip_value: 10.0
search:
  trials: 3
  bounds: initial
  ranges: {contrastive: {loss.neg_margin: {low: 0.1, high: 0.9}}}
reproductions: 4
folds: 2
seed: 1
embedder: {hidden: [32], init: random}
settings: {contrastive: {loss.pos_margin: 0.1}, proxy_anchor: {batch.samples_per_class: 2}}
metrics: ["recall@2", nmi]
with: {strict: {training.batch_size: 16}}
primary: {metric: r_precision, embeddings: separated, compare: best, margin: 0.5}
recordings: {images: training, epochs: [0, 1], per_class: 2}
"""
PANELS = """\
title: Panels
dataset: {name: cub200}
methods: [proxy_anchor]
trunk: {name: bn_inception}
search: {trials: 0}
proxies: {lr_multiplier: 100, warmup_passes: 1}
reproductions: 5
panels:
  a: {training: &short {max_epochs: 3}}
  b: {training: {<<: *short, batch_size: 16}, dataset: {name: cars196}}
"""
CARD = """\
key: mine
title: Mine
source: nobody
papers: ["https://example.org/paper"]
loss:
  name: ContrastiveLoss
  arguments: {pos_margin: 0.0, neg_margin: 1.0, distance: {component: {kind: distance, name: LpDistance}}}
miner: {name: MultiSimilarityMiner, arguments: {epsilon: 0.1}}
embedding_regularizer: {name: LpRegularizer, weight: 0.1}
batch: {samples_per_class: 4}
loss_optimizer: {lr: 0.1, weight_decay: 0.0}
warmup: {passes: 1}
search:
  loss.neg_margin: {scale: log, low: 0.1, high: 2.0, datasets: {cub200: {low: 0.1, high: 1.0}}}
  batch.samples_per_class: {scale: choice, choices: [2, 4]}
published: {cub200: {loss.neg_margin: 0.5}}
fixed: {sop: {loss.pos_margin: 0.2}}
"""

_SNIPPETS = (
    *("!!int x", "!!float y", "!!bool maybe", "!!null z", "!!binary aGk=", "!!set {a}", "!!python/object:os.system x"),
    *(
        "2001-99-99",
        "2001-01-01",
        "12:30:45",
        ".nan",
        ".inf",
        "-.inf",
        "1.0e+999",
        "0x",
        "0b2",
        "1_0",
        "=",
        "~",
        "<<: 1",
    ),
    *("&a [*a]", "*nobody", '"\\0"', '"\\ud800"', '"\\x1b[31m"', "{1: 2}", "? [a]", "[red]", "{a: 1, a: 2}", "%", "\t"),
    *("- ", ": ", "---\n", "[" * 300, "9" * 5000, "\ufeff", "| \n", "'", '"'),
)
_HOSTILE: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 10**6, 10**12, 10**30, -(10**30), 0.0, -0.0, 0.5, -0.5, 1e-300, 1e300),
    *(float("nan"), float("inf"), "", " ", "nan", "inf", "1", "-1", "0", "x", ".", "..", "/", "./x.py:A", "a.b:C", ":"),
    *("[red]x[/red]", "[/]", "<script>", "$num_classes", "component", "a" * 5000, "ä\u2028b", "recall@0", "recall@-1"),
    *([], [[]], {}, [None], [1, 2], [0.5], [1.0, 0.1], ["x"], {"x": 1}, {"component": 1}, {"component": {}}),
    *({"component": {"name": 1}}, {"component": {"name": "x", "arguments": 3}}, {"low": 0, "high": 1}, {"": {}}),
)


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, part in pairs for place in [(*path, key), *_places(part, (*path, key))]]


@st.composite
def damaged_values(draw: st.DrawFn, text: str) -> str:
    """The YAML of a text in which one to three values or keys are replaced, removed, or added."""
    content = yaml.safe_load(text)
    for _ in range(draw(st.integers(1, 3))):
        places = _places(content)
        if not places:
            break
        *outer, last = draw(st.sampled_from(places))
        part = content
        for key in outer:
            part = part[key]
        change = draw(st.sampled_from(["replace", "replace", "replace", "remove", "rename", "wrap", "add"]))
        if change == "remove":
            del part[last]
        elif change == "wrap":
            part[last] = draw(st.sampled_from([[part[last]], {"x": part[last]}, str(part[last])]))
        elif change in ("rename", "add") and isinstance(part, dict):
            new = draw(
                st.sampled_from(["", "x", 1, None, True, "loss.x", "a.b.c", "[b]", "nan", f"{last}s", f"x.{last}"])
            )
            part[new] = part[last] if change == "add" else part.pop(last)
        else:
            # A copy, since a later change can be made within the value.
            part[last] = deepcopy(draw(st.sampled_from(_HOSTILE)))
    return yaml.safe_dump(content, sort_keys=False, allow_unicode=True)


@st.composite
def damaged_text(draw: st.DrawFn, text: str) -> str:
    """A text with one to four places cut, doubled, or replaced by syntax that YAML treats in its own way."""
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 12)))
        middle = draw(st.sampled_from(["", text[start:end] * 2, *_SNIPPETS]) | st.text(max_size=4))
        text = text[:start] + middle + text[end:]
    return text


def damaged(text: str) -> st.SearchStrategy[str]:
    """A damaged YAML text."""
    return damaged_values(text) | damaged_text(text)
