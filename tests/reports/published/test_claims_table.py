"""The table of claims: its words, its sentences and its formats."""

import pytest

from reports.published.claim_answers import answer_claims
from reports.published.claims_table import claims_table
from reports.tables.formats import WRITERS
from results.published.claims import read_claims, shipped_claims
from tests.support.published_world import PAPER, changed, experiment, single_runs

HEADER = "source,place,a,b,dataset,score,value_a,value_b,runs,plus_minus,plus_minus_kind,setting\n"
ISA = "Proxy-ISA,Table 1,proxy_isa,proxy_anchor,cub200,R@1,68.1,66.6,,,,proxy_isa_table1\n"


def table_of(lines, *stored):
    return claims_table(answer_claims(read_claims(HEADER + lines, "my.csv"), stored), "Claims")


def of_paper(high=(0.70, 0.701, 0.702), low=(0.60, 0.601, 0.602), **changes):
    records = single_runs("proxy_isa", list(high)) + single_runs("proxy_anchor", list(low))
    return experiment("proxy_isa_table1/cub200", changed(PAPER, **changes), records)


def words(table, column):
    index = [known.name for known in table.columns].index(column)
    return [row.cells[index].value for row in table.rows]


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
    table = table_of(ISA, of_paper(high=(0.68, 0.70, 0.72), low=(0.67, 0.70, 0.715)))
    assert (words(table, "runs"), words(table, "size")) == (["cannot tell"], ["cannot tell"])
    assert words(table, "could have seen")[0] > 0.01
    single = table_of(ISA, of_paper(high=[0.68], low=[0.67]))
    assert (words(single, "size"), words(single, "p")) == (["single runs"], [None])


def test_quoted_values_are_marked():
    table = claims_table(answer_claims(shipped_claims(), []), "Main claims")
    signs = {(row.head, row.sign) for row in table.rows}
    assert ("Proxy-ISA, Table 1: proxy_isa > proxy_anchor", "") in signs
    assert ("Proxy-ISA, Table 1: proxy_isa > proxy_gml", "†") in signs
    assert "It quotes " in table.remarks[-1]


def test_every_format_writes_the_shipped_claims():
    table = claims_table(answer_claims(shipped_claims(), []), "Main claims")
    for write in WRITERS.values():
        assert "proxy" in write(table)
