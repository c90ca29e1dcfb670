"""Files of claims: the shipped one against the published tables, and what is said about a file with a mistake."""

import pytest

from results.published.claims import COLUMNS, ClaimsFileError, claimed_cells, key_by_print, read_claims, shipped_claims
from results.published.tables import published_table, published_tables

HEADER = "source,place,a,b,dataset,score,value_a,value_b,difference,runs,plus_minus,plus_minus_kind\n"
LINE = "P,Table 1,one,other,CUB-200-2011,R@1,66.5,65.3,1.2,5/3,0.3/0.2,standard deviation\n"


def claims_of(line, header=HEADER):
    return read_claims(header + line, "my.csv")


SECOND_HAND = {"PFML": 3, "CCL": 2}
"""Sources whose values are as others quote them, and their claims over Proxy-Anchor."""
OF_TABLES = [claim for claim in shipped_claims() if claim.source not in SECOND_HAND]


@pytest.mark.parametrize("claim", OF_TABLES, ids=lambda claim: f"{claim.setting} {claim.a} {claim.dataset}")
def test_shipped_claims_have_the_values_of_the_published_tables(claim):
    cells = claimed_cells(claim)
    assert cells is not None
    sides = zip((claim.a, claim.b), (claim.value_a, claim.value_b), claim.runs, claim.plus_minus, strict=True)
    for (method, value, runs, plus_minus), (row, cell) in zip(sides, cells, strict=True):
        assert (row.key, cell.column) == (method, (claim.dataset, claim.metric, claim.kind))
        assert (cell.value, cell.plus_minus, cell.runs) == (float(value), plus_minus, runs)
        assert cell.spread in (None, claim.plus_minus_kind)
    (row_a, _), (row_b, _) = cells
    assert (row_a.dimensions, row_a.trunk) == (row_b.dimensions, row_b.trunk)


def test_shipped_claims_name_the_five_papers_and_the_tables_that_they_are_in():
    papers = {
        "Proxy-ISA": "Informative Sample-Aware Proxy",
        "Proxy-Anchor": "Proxy Anchor Loss",
        "CCP": "Deep Metric Learning with Chance Constraints",
        "ProxyGML": "Fewer is More",
        "NIR": "Non-isotropy Regularization",
    }
    assert {claim.source for claim in OF_TABLES} == set(papers)
    for claim in OF_TABLES:
        table = published_table(claim.setting)
        assert table.paper.startswith(papers[claim.source])
        if claim.place.startswith("Table"):
            assert f", {claim.place}:" in table.title


@pytest.mark.parametrize("source", SECOND_HAND)
def test_values_at_second_hand_have_claims_and_no_table_and_a_baseline_of_kim_et_al(source):
    claims = [claim for claim in shipped_claims() if claim.source == source]
    assert {claim.setting for claim in claims}.isdisjoint(published_tables())
    printed = {
        (cell.column.dataset, row.trunk, cell.as_published)
        for table in ("proxy_anchor_cub_cars", "proxy_anchor_ablation")
        for row in published_table(table).rows
        for cell in row.cells.values()
        if cell.column.metric == "precision_at_1"
    }
    trunks = {"BN-Inception": "BN", "ResNet-50": "ResNet-50"}
    quoted = {
        (claim.dataset, trunks[claim.setting.partition(",")[0]], str(claim.value_b))
        for claim in claims
        if claim.b == "proxy_anchor"
    }
    assert len(quoted) == SECOND_HAND[source]
    assert quoted <= printed


def test_a_line_is_read_with_both_sides_and_in_points():
    (claim,) = claims_of(LINE)
    assert (claim.dataset, claim.metric, claim.kind) == ("cub200", "precision_at_1", "single")
    assert (claim.points, claim.digits, claim.plus_minus_kind) == (1.2, 1, "standard deviation")
    assert (float(claim.value_a), float(claim.value_b)) == (66.5, 65.3)
    assert (claim.runs, claim.plus_minus) == ((5, 3), (0.3, 0.2))


def test_most_columns_may_be_left_out():
    (claim,) = read_claims("a,b,dataset,score,difference\none,other,glyphs,MAP@R concatenated,1.25\n", "my.csv")
    assert (claim.metric, claim.kind, claim.points, claim.digits) == ("map_at_r", "concatenated", 1.25, 2)
    assert (claim.value_a, claim.runs, claim.plus_minus) == (None, (None, None), (None, None))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("R@1", "F1", "score 'F1' is unknown; use R@1"),
        ("66.5", "66,5", "check commas and quotes"),
        ("66.5", "high", "value_a: Input should be a valid decimal"),
        ("66.5", "nan", "value_a: Input should be a finite number"),
        ("66.5", "", "give value_a and value_b, or the difference"),
        ("66.5,65.3,1.2", "0.665,0.653,", "look like fractions; write both in percent"),
        ("66.5,65.3,1.2", "66.6,0.65,", "look like fractions; write both in percent"),
        ("0.3/0.2", "0.3/0.004", "plus_minus 0.004 looks like a fraction; write percentage points"),
        ("66.5,65.3,1.2", "66.5,65.3,2.2", "the difference is 2.2, but the values differ by 1.20"),
        ("66.5,65.3,1.2", "65.3,66.5,", "a must be the method that is claimed to be better"),
        ("5/3", "some", "runs: Input should be a valid integer"),
        ("standard deviation", "error", "plus_minus_kind: Input should be '95 % interval'"),
        ("other", "one", "a and b are both 'one'; name two methods"),
        ("other", "", "b: Field required; the columns are source, place, a, b"),
    ],
)
def test_a_mistake_is_said_in_one_line_with_its_number_and_a_remedy(old, new, said):
    with pytest.raises(ClaimsFileError) as refused:
        claims_of(LINE + LINE.replace(old, new))
    message = str(refused.value)
    assert message.startswith("my.csv, line 3: ")
    assert said in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("printed", "key"),
    [
        ("Proxy-Anchor", "proxy_anchor"),
        ("proxy anchor", "proxy_anchor"),
        ("PA", "proxy_anchor"),
        ("ProxyAnchor (PA)", "proxy_anchor"),
        ("PA + NIR", "nir_proxy_anchor"),
        ("Multi-Similarity", "multi_similarity"),
        ("N. Softmax", "normalized_softmax"),
        ("ProxyNCA++", "proxy_nca_pp"),
        ("ProxyNCA", "proxy_nca"),
        ("proxy_anchor", "proxy_anchor"),
        ("MS", "MS"),
        ("my_own", "my_own"),
    ],
)
def test_a_method_may_have_its_name_in_print(printed, key):
    titles = {"proxy_anchor": "Proxy-Anchor", "multi_similarity": "Multi-Similarity"}
    text = f"a,b,dataset,score,difference\n{printed},other,cub200,R@1,1.25\n"
    assert read_claims(text, "my.csv", key_by_print(titles))[0].a == key


def test_two_names_in_print_of_one_method_are_no_claim():
    text = "a,b,dataset,score,difference\nPA,Proxy-Anchor,cub200,R@1,1.25\n"
    with pytest.raises(ClaimsFileError, match=r"line 2: a and b are both 'proxy_anchor'"):
        read_claims(text, "my.csv", key_by_print({"proxy_anchor": "Proxy-Anchor"}))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "there is no claim"),
        (HEADER, "there is no claim"),
        ("a,b,dataset\none,other,cub200\n", "line 2: score: Field required; the columns are source"),
        (HEADER.replace("runs", "seeds") + LINE, "line 2: seeds: Extra inputs are not permitted; the columns are"),
        (HEADER + '"P,', "check commas and quotes"),
    ],
)
def test_a_wrong_header_or_an_empty_file_is_refused(text, said):
    with pytest.raises(ClaimsFileError, match=said):
        read_claims(text, "my.csv")


def test_a_byte_order_mark_and_spaces_do_no_harm():
    (claim,) = read_claims("\ufeff" + HEADER.replace(",", ", ") + LINE.replace(",", " , "), "my.csv")
    assert (claim.a, claim.runs[1]) == ("one", 3)
    assert set(HEADER.strip().split(",")) < set(COLUMNS)
