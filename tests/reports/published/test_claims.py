"""Which experiment answers a claim, under which conditions, what is said without runs; and the table of claims."""

from dataclasses import replace

import pytest

from reports.published.claims import answer_claims, claims_table
from reports.tables.differences import differences
from results.findings.experiment import answer_of
from results.published.claims import claimed_cells, read_claims, shipped_claims
from tests.support.measured_experiment import read
from tests.support.published_world import MLRC, PAPER, changed, experiment, runs_of, single_runs
from tests.support.sample_records import changed_run, with_own_loss

HEADER = "a,b,dataset,score,value_a,value_b,setting\n"
HIGH, LOW = [0.70, 0.701, 0.702], [0.60, 0.601, 0.602]
SMALL = changed(
    MLRC,
    dataset={"name": "glyphs"},
    methods=["proxy_isa", "proxy_anchor"],
    trunk={"name": "small_conv", "weights": "random"},
    search={"trials": 0},
)


def claim(a="proxy_isa", b="proxy_anchor", score="R@1", values="68.1,66.6", setting="proxy_isa_table1"):
    return read_claims(f"{HEADER}{a},{b},cub200,{score},{values},{setting}\n", "my.csv")


def of_paper(high=HIGH, low=LOW, name="proxy_isa_table1/cub200", departures=(), **changes):
    records = single_runs("proxy_isa", high) + single_runs("proxy_anchor", low)
    return experiment(name, changed(PAPER, **changes), records, departures)


def on_glyphs(name="glyphs_experiment"):
    records = runs_of("proxy_isa", LOW, "glyphs") + runs_of("proxy_anchor", HIGH, "glyphs")
    return experiment(name, SMALL, records)


def answered(*stored, any_dataset=False, **fields):
    (answer,) = answer_claims(claim(**fields), stored, any_dataset)
    return answer


def test_runs_of_the_papers_experiment_answer_under_its_conditions():
    answer = answered(of_paper())
    assert (answer.verdict, answer.runs.stored.name, answer.runs.differences) == (
        "holds",
        "proxy_isa_table1/cub200",
        (),
    )
    assert answer.runs.pair.difference == pytest.approx(0.1)
    assert answered(of_paper(LOW, HIGH)).verdict == "contradicted"
    assert answered(of_paper([0.6], [0.61])).verdict == "cannot tell"


@pytest.mark.parametrize(
    ("stored", "said"),
    [
        (of_paper(name="mine"), "not the settings of proxy_isa_table1"),
        (of_paper(departures=("seed otherwise",)), "seed otherwise"),
        (of_paper(dataset={"subset": True}), "a subset of the dataset"),
        (of_paper(trunk={"name": "resnet50"}), "trunk resnet50, published for Inception with batch normalization"),
        (
            replace(of_paper(), answer=answer_of(with_own_loss(of_paper().measured, "proxy_isa"))),
            "a loss or miner of its own",
        ),
        (of_paper(images={"crop": 96}), "images of 96 pixels, published for 224"),
    ],
)
def test_other_conditions_answer_and_are_named(stored, said):
    answer = answered(stored)
    assert answer.verdict == "seen here too"
    assert said in answer.runs.differences


def test_a_quoted_value_was_not_measured_under_equal_conditions():
    answer = answered(b="proxy_gml", values="68.1,66.6")
    assert list(answer.quoted) == ["proxy_gml"]
    records = single_runs("proxy_isa", HIGH) + single_runs("proxy_gml", LOW)
    stored = experiment("proxy_isa_table1/cub200", changed(PAPER, methods=["proxy_isa", "proxy_gml"]), records)
    differences = answered(stored, b="proxy_gml").runs.differences
    assert any(reason.startswith("the paper quotes the value of proxy_gml from Zhu") for reason in differences)


def test_claims_without_a_published_table_have_unknown_conditions():
    answer = answered(of_paper(), setting="")
    assert (answer.verdict, answer.runs.differences) == ("seen here too", None)


def test_under_other_conditions_no_claim_holds_or_is_contradicted():
    other = {"name": "mine"}
    assert answered(of_paper(LOW, HIGH, **other)).verdict == "the other way here"
    assert answered(of_paper([0.6], [0.61], **other)).verdict == "cannot tell"
    equal = [[0.7, 0.7001, 0.7002], [0.7, 0.7001, 0.7002]]
    assert answered(of_paper(*equal, **other)).verdict == "not seen here"
    assert answered(of_paper(*equal)).verdict == "cannot tell", "size is another column than direction"
    less = answered(of_paper(*equal, **other), values="68.1,67.8", setting="")
    assert (less.verdict, less.runs.pair.size) == ("cannot tell", "within"), "no more than the margin is claimed"


def test_the_experiment_is_chosen_by_conditions_then_runs_and_never_by_scores():
    other = of_paper(LOW * 2, HIGH * 2, name="mine")
    assert answered(other, of_paper()).runs.stored.name == "proxy_isa_table1/cub200"
    fewer, more = of_paper(LOW, HIGH, name="fewer"), of_paper([*HIGH, 0.7], [*LOW, 0.6], name="more")
    assert answered(fewer, more).runs.stored.name == "more"
    latest, earlier = of_paper(LOW, HIGH, name="latest"), of_paper(name="earlier")
    assert answered(latest, earlier).runs.stored.name == "latest"


def test_other_experiments_that_could_answer_are_named_with_their_verdicts():
    chosen, other = of_paper(LOW, HIGH, name="chosen"), of_paper(LOW[:2], HIGH[:2], name="other")
    found = answered(other, chosen)
    (another,) = found.others
    assert (found.runs.stored.name, another.stored.name) == ("chosen", "other")
    (note,) = [note for note in claims_table([found], "Claims").notes if "could answer too" in note]
    assert note.endswith(f"answered by chosen; other ({another.verdict}) could answer too.")
    assert not answered(chosen).others


def test_of_equally_many_searches_those_under_nearer_conditions_answer():
    near, far = of_paper(departures=("one",)), of_paper(departures=("one", "two"))
    for stored in ([near, far], [far, near]):
        found = answered(*stored)
        assert (len(found.runs.differences), [len(one.differences) for one in found.others]) == (1, [2])


def test_rows_under_different_conditions_are_not_compared():
    conditions = {"with": {"proxy_isa": {"training.batch_size": 32}}}
    answer = answered(of_paper(**conditions))
    assert (answer.verdict, answer.not_compared) == ("not compared", ("proxy_isa_table1/cub200",))


def test_pairs_and_scores_that_the_file_does_not_ask_for_are_not_compared():
    runs = single_runs("proxy_isa", LOW) + single_runs("proxy_anchor", HIGH) + single_runs("soft_triple", [0.8, 0.81])
    primary = {"metric": "precision_at_1", "embeddings": "separated", "compare": "best"}
    with_best = experiment("mine", changed(PAPER, primary=primary), runs)
    assert answered(with_best).verdict == "not compared"
    assert answered(with_best, a="soft_triple", setting="").verdict == "seen here too"
    no_nmi = experiment("no_nmi", MLRC, runs_of("contrastive", HIGH) + runs_of("triplet", LOW))
    assert answered(no_nmi, a="contrastive", b="triplet", score="NMI").verdict == "not compared"


def test_answers_are_those_of_the_experiments_own_table():
    runs = single_runs("proxy_isa", LOW) + single_runs("proxy_anchor", HIGH) + single_runs("soft_triple", [0.61] * 3)
    settings = changed(PAPER, primary={"metric": "precision_at_1", "embeddings": "separated", "margin": 2.0})
    stored = experiment("mine", settings, runs)
    answer, table = answered(stored, setting="").runs, read(differences(stored.answer)).set_index(["a", "b"])
    row = table.loc["proxy_anchor", "proxy_isa"]
    assert (answer.pair.p_better, answer.pair.size) == (pytest.approx(row["p_better"]), row["size"])
    question = answer.answer.question
    assert (question.alpha, question.bound) == (0.05, 0.02)
    further = answered(stored, score="MAP@R", setting="").runs.answer.question
    assert (further.alpha, further.bound) == (0.01, 0.02)


def test_an_own_card_from_a_file_is_found_by_its_name():
    runs = single_runs("my_loss", HIGH) + single_runs("proxy_anchor", LOW)
    stored = experiment("mine", changed(PAPER, methods=["cards/my_loss.yaml", "proxy_anchor"]), runs)
    assert answered(stored, a="my_loss", setting="").verdict == "seen here too"


def test_repeated_searches_answer_before_many_runs():
    again = [
        changed_run(run, **{"search": 1, "fingerprint": f"{run.fingerprint}-1"}) for run in of_paper().measured.records
    ]
    repeated = experiment(
        "mine", changed(PAPER, search={"trials": 20, "searches": 2}), [*of_paper().measured.records, *again]
    )
    once = of_paper(HIGH * 3, LOW * 3, name="once", search={"trials": 20})
    answer = answered(once, repeated, setting="").runs
    assert (answer.stored.name, len(answer.pair.of_a.units), answer.pair.of_a.runs) == ("mine", 2, 6)


@pytest.mark.parametrize(
    "stored",
    [
        experiment("one_method", PAPER, single_runs("proxy_isa", HIGH)),
        on_glyphs(),
    ],
)
def test_without_runs_of_both_methods_a_claim_is_not_run(stored):
    answer = answered(stored)
    assert (answer.verdict, answer.runs) == ("not run", None)


def test_other_datasets_answer_only_if_asked_and_after_the_claims_own():
    answer = answered(on_glyphs(), any_dataset=True)
    assert (answer.verdict, answer.runs.stored.dataset) == ("the other way here", "glyphs")
    assert "dataset glyphs" in answer.runs.differences
    assert answered(on_glyphs(), of_paper([0.7], [0.6]), any_dataset=True).runs.stored.dataset == "cub200"


def test_equal_values_of_other_networks_are_not_taken():
    (nir,) = [c for c in shipped_claims() if (c.setting, c.dataset) == ("nir_table2", "sop")]
    (row_a, _), (row_b, _) = claimed_cells(nir)
    assert (row_a.dimensions, row_b.dimensions) == (512, 512)
    assert claimed_cells(claim(values="68.2,66.6")[0]) is None


OF_TABLE = "source,place,a,b,dataset,score,value_a,value_b,runs,plus_minus,plus_minus_kind,setting\n"
ISA = "Proxy-ISA,Table 1,proxy_isa,proxy_anchor,cub200,R@1,68.1,66.6,,,,proxy_isa_table1\n"


def table_of(lines, *stored):
    return claims_table(answer_claims(read_claims(OF_TABLE + lines, "my.csv"), stored), "Claims")


def words(table, column):
    return [cell.value for cell in table.column(column)]


@pytest.mark.parametrize(
    ("line", "said", "source"),
    [
        (ISA, "within noise", "28 printed ± for R@1 on cub200: s = 0.65 points, from proxy_isa_table2, nir_"),
        (ISA.replace("66.6", "56.6"), "beyond noise", "28 printed ±"),
        (ISA.replace("66.6,,", "66.6,10,0.3"), "beyond noise", ""),
        (ISA.replace("cub200", "inshop"), "no fitting deviation", ""),
    ],
)
def test_print_alone_and_the_source_of_its_deviation(line, said, source):
    table = table_of(line)
    assert words(table, "print alone") == [said]
    assert source in " ".join(table.remarks)


def test_an_empty_store_leaves_out_the_columns_about_runs():
    table = table_of(ISA)
    assert "ours" not in [column.name for column in table.columns]
    assert words(table, "runs") == ["not run"]
    assert table.notes == (
        "1 claim. Print alone: 1 within noise (if a ± of unstated meaning is a deviation, 1 beyond noise). "
        "Runs: 1 claim not run.",
    )


def test_runs_have_numbers_size_and_conditions():
    table = table_of(ISA, of_paper())
    expected = {"runs": "holds", "experiment": "proxy_isa_table1/cub200", "size": "beyond 0.5"}
    assert {column: words(table, column)[0] for column in expected} == expected
    assert words(table, "ours") == [pytest.approx(0.1)]
    assert (words(table, "claimed size"), words(table, "n")) == (["excluded"], [3])
    assert "its own 95 % interval, which is not corrected" in table.caption
    assert len(table.notes) == 1, "under the claim's conditions there is nothing to say"


def test_undecided_claims_say_what_it_would_take():
    table = table_of(ISA, of_paper([0.68, 0.70, 0.72], [0.67, 0.70, 0.715]))
    assert (words(table, "runs"), words(table, "size")) == (["cannot tell"], ["cannot tell"])
    assert words(table, "would have shown")[0] > 0.01
    single = table_of(ISA, of_paper([0.68], [0.67]))
    assert (words(single, "size"), words(single, "p")) == (["single runs"], [None])


def test_quoted_values_are_marked():
    table = claims_table(answer_claims(shipped_claims(), []), "Main claims")
    signs = {(row.head, row.sign) for row in table.rows}
    assert ("Proxy-ISA, Table 1: proxy_isa > proxy_anchor", "") in signs
    assert ("Proxy-ISA, Table 1: proxy_isa > proxy_gml", "†") in signs
    assert "It quotes " in table.remarks[-1]


def test_an_unfinished_experiment_answers_no_claim():
    finished = of_paper()
    rows = finished.measured.plan.rows
    plan = finished.measured.plan.model_copy(update={"rows": {**rows, "not_run": rows["proxy_isa"]}})
    table = table_of(ISA, replace(finished, answer=answer_of(replace(finished.measured, plan=plan))))
    said = [words(table, column)[0] for column in ("runs", "size", "claimed size")]
    assert said == ["cannot tell", "interim", None]
