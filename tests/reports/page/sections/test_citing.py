"""What the page gives to paste into a paper."""

from dataclasses import replace

import yaml

from reports.page.build import build_page
from reports.page.content import MethodSource
from reports.page.render import render_page
from reports.page.sections.citing import citing
from tests.support.page_material import A, B, material, replace_run, searched, values
from tests.support.sample_records import some_provenance


def test_the_paragraph_has_the_numbers_of_the_experiment():
    world = searched(reproductions=2, a=(30, 31, 32), b=(20, 21, 22))
    paragraph, bibtex, commit = citing(world)
    run = world.records["a"][0]
    for said in ("We tested 2 methods", "20 trials per method", "(6 runs per method)", run.provenance.commit):
        assert said in paragraph.text
    assert f"{run.test_images:,} images of {run.test_classes:,} test classes" in paragraph.text
    assert "searched 3 times from other seeds, each time with 20 trials" in paragraph.text
    assert "All pairs were compared in concatenated MAP@R with t-tests over means of searches." in paragraph.text
    assert '"better" or "equal within 0.5 points", is at most 5 %.' in paragraph.text
    assert run.provenance.commit in bibtex.text
    assert "{A Metric Learning Reality Check}" in bibtex.text
    assert "url" not in bibtex.text
    assert commit.text == run.provenance.commit
    assert "not recorded" in commit.purpose


def test_the_paragraph_says_what_was_compared():
    single = citing(material(values(a=A, b=B), trials=10))[0].text
    assert "over single searches with an assumed deviation between searches" in single
    assert "if searches vary at most twice as much as in results/measured/all_methods_glyphs_three_searches" in single
    given = citing(material(values(a=A, b=B)))[0].text
    assert "Hyperparameters were not searched" in given
    assert "over runs of the given settings" in given


def test_a_known_repository_gives_a_permanent_link_to_each_commit():
    world = replace(material(values(a=A)), repository="https://github.com/somebody/suite")
    link = f"https://github.com/somebody/suite/commit/{world.records['a'][0].provenance.commit}"
    assert f"url     = {{{link}}}" in citing(world)[1].text
    assert citing(world)[2].text == link
    assert f'<a href="{link}"' in render_page(build_page(world).content)
    other = replace_run(world.records["a"][0], provenance=some_provenance().model_copy(update={"commit": "another"}))
    two = replace(material({"a": [*world.records["a"][1:], other]}), repository="https://github.com/somebody/suite")
    another = "https://github.com/somebody/suite/commit/another"
    assert [text.text for text in citing(two)[2:]] == sorted([another, link])
    assert "url     = {https://github.com/somebody/suite}," in citing(two)[1].text


def test_an_unknown_commit_has_no_link():
    unknown = some_provenance().model_copy(update={"commit": "unknown"})
    runs = [replace_run(run, provenance=unknown) for run in values(a=A)["a"]]
    texts = citing(replace(material({"a": runs}), repository="https://github.com/somebody/suite"))
    assert len(texts) == 2
    assert "Commit unknown" in texts[1].text


def test_the_software_has_the_title_of_the_citation_file():
    with open("CITATION.cff", encoding="utf-8") as file:
        citation = yaml.safe_load(file)
    assert citation["title"] in citing(material(values(a=A)))[1].text


def test_uncommitted_changes_and_several_commits_are_said():
    dirty = some_provenance().model_copy(update={"tree_dirty": True})
    runs = [replace_run(run, provenance=dirty) for run in values(a=A)["a"]]
    assert "with uncommitted changes" in citing(material({"a": runs}))[0].text
    other = replace_run(runs[0], provenance=dirty.model_copy(update={"commit": "another"}))
    assert "at 2 commits" in citing(material({"a": [*runs[1:], other]}))[0].text


def test_nothing_is_cited_without_runs():
    assert citing(material({"a": []})) == ()


def test_sources_and_definitions_are_on_the_page():
    source = MethodSource("Somebody et al., 2020", ("https://arxiv.org/abs/1234.56789",))
    world = replace(material(values(a=A)), sources={"a": source})
    page = render_page(build_page(world).content)
    link = '<a href="https://arxiv.org/abs/1234.56789"'
    for said in ("Papers of the methods", "Somebody et al., 2020", link, "How to cite", "Glossary", "divided by R"):
        assert said in page
    assert "Papers of the methods" not in render_page(build_page(material(values(a=A))).content)
