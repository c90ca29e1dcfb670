"""Any text in LaTeX: every character is escaped or set, and what a paper's table says is fit for a paper."""

import re
from dataclasses import replace

import pytest

from reports.tables.differences import differences
from reports.tables.latex import to_latex, to_latex_document
from reports.tables.latex_text import FALLBACK, escape_latex, printed
from reports.tables.table import Cell, Column, Row, Table
from reproduce.outputs.tables import KINDS, compared_with_runs
from results.published.tables import published_tables
from results.store.experiment_results import MeasuredExperiment
from tests.support.sound_latex import check_latex, compiled, needs_pdflatex

SCRIPTS = {
    **{"Japanese": "日本語", "Arabic": "العربية", "Hindi": "हिन्दी", "Greek": "Ελληνικά ΰ", "Cyrillic": "Українська"},
    **{"Vietnamese": "Tiếng Việt", "Polish": "źdźbło", "Turkish": "İğne", "Thai": "ไทย", "emoji": "👩\u200d🔬 🇨🇭"},
    **{
        "raw bytes": "\udcff",
        "control": "a\x00\x1bb\n\nc\td",
        "marks": "e\u0301\u0323\u20dd \u200f",
        "long": "x_y-" * 15,
    },
    "TeX": r"\input{x} \\ $$ %%% ## ~^ {}} [1] *2 --- ,, '' `` !` ?` << >> \" | \relax& \ ` a`b`",
}
BLOCKS = {"latin": (0x20, 0x250), "greek": (0x370, 0x530), "more": (0x1E00, 0x2300), "signs": (0x2500, 0x2800)}


def named(name: str) -> Table:
    """A table with a text in all places that hold one."""
    row = Row.single(name, [Cell(name, mark="best"), Cell(0.5, 0.1, note=name, kind="measured"), Cell(name)], sign=name)
    columns = (Column(name, name, numeric=False), Column(name, name), Column(name, numeric=False))
    return Table(name, name, columns, (row, row), first=name, notes=(name,), remarks=(name,))


@pytest.mark.parametrize("text", SCRIPTS.values(), ids=SCRIPTS)
def test_any_name_is_sound_in_all_places(text):
    check_latex(to_latex_document(named(text)), around=("document",))


@needs_pdflatex
@pytest.mark.parametrize("text", SCRIPTS.values(), ids=SCRIPTS)
def test_any_name_compiles_in_all_places(text, tmp_path):
    compiled(to_latex_document(named(text)), tmp_path)


@needs_pdflatex
@pytest.mark.parametrize(("first", "end"), BLOCKS.values(), ids=BLOCKS)
def test_every_character_compiles(first, end, tmp_path):
    lines = [escape_latex(f"{chr(code)}a{chr(code)} {chr(code) * 2}") + r"\par" for code in range(first, end)]
    compiled(
        "\n".join([r"\documentclass{article}", r"\begin{document}", FALLBACK, *lines, r"\end{document}"]), tmp_path
    )


@pytest.mark.parametrize(
    ("text", "latex"),
    [
        ("é à ñ ğ ź", r"\'{e} \`{a} \~{n} \u{g} \'{z}"),
        ("e\u0301", r"\'{e}"),
        ("í ế", r"\'{\i{}} \'{\^{e}}"),
        ("λ Ω Αό ΐ", r"$\lambda$ $\Omega$ A\'{o} $\acute{\ddot{\iota}}$"),
        ("m² H₂O", r"m\textsuperscript{2} H\textsubscript{2}O"),
        ("日", r"\unicodechar{26085}{U+65E5 }"),
        ("`a_b` `", r"\texttt{a\_b} \textasciigrave{}"),
        ('"a" "', r"\textquotedblleft{}a\textquotedblright{} \textquotedblright{}"),
        ("--x a|b ''", r"-{}-x a\textbar{}b '{}'"),
        ("a\n\nb\x00", "a  b "),
    ],
)
def test_characters_are_set_as_they_look(text, latex):
    assert escape_latex(text) == latex


def test_different_names_stay_different():
    names = ["日本", "日本語", "ą", "a", "а", "é", "e", "①", "1", "²", "2", "“", '"']
    assert len({escape_latex(name) for name in names}) == len(names)


def test_a_letter_without_a_font_is_its_number_unless_the_author_sets_it():
    latex = to_latex(named("語"))
    assert latex.startswith(r"\providecommand{\unicodechar}")
    assert printed("語a") == "U+8A9E a"
    assert r"\unicodechar" not in to_latex(named("é"))


@needs_pdflatex
@pytest.mark.parametrize("kind", KINDS)
def test_tables_of_an_experiment_with_foreign_names_fit_their_page(kind, tmp_path):
    kept = MeasuredExperiment.kept("quickstart")
    names = [
        "日本語の方法",
        "العربية",
        "Sehr_langer_Name_einer_Methode_mit_sechzig_Buchstaben_abcdefg",
        "`x` 👩\u200d🔬",
    ]
    summary = kept.summary.model_copy(update={"methods": dict(zip(kept.summary.methods, names, strict=True))})
    table = KINDS[kind](replace(kept, summary=summary))
    said = compiled(to_latex_document(table), tmp_path)
    assert "Overfull" not in said
    assert "Float too large" not in said


COMMAND = re.compile(r"`|(?<![\w-])--\w|\breproduce [a-z]|python -m|\bdocs/|\.md\b(?! bar)|Run the ")
RECORDS = ["quickstart", "quickstart_one_search", "all_methods_glyphs", "mlrc_frozen_cub200_subset"]


@pytest.mark.parametrize("name", RECORDS)
def test_texts_of_tables_hold_no_commands(name):
    kept = MeasuredExperiment.kept(name)
    mixed = [run.model_copy(update={"training_version": 1 + place % 2}) for place, run in enumerate(kept.records)]
    for measured in (kept, replace(kept, records=tuple(mixed), others=("other",)), replace(kept, records=())):
        for draw in KINDS.values():
            table = draw(measured)
            texts = [table.title, table.full_caption, *table.notes, *table.remarks]
            assert not [text for text in texts if COMMAND.search(text)]
    assert "documentation" in differences(MeasuredExperiment.kept("quickstart")).caption


def test_notes_of_published_tables_hold_no_commands():
    for name in published_tables():
        for text in compared_with_runs(name, None).notes:
            assert not COMMAND.search(text)
