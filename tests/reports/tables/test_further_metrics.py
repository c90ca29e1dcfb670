"""Further metrics, of the suite and of the user, are columns of the table of results, with short names."""

import csv
import io

from reports.tables.formats import to_csv, to_markdown
from reports.tables.result_table import cells_beside, table_of
from reports.tables.table import Table, cell_text
from results.store.experiment_results import MeasuredExperiment
from tests.support.sample_records import some_run, some_summary

OWN = "lab/my_metrics.py:spread (sha256 0123456789abcdef)"
OTHER = "lab/others.py:spread (sha256 fedcba9876543210)"


def table(*names: str, without: int = 0) -> Table:
    values = dict.fromkeys(names, 0.0)
    runs = [
        some_run(
            "triplet",
            run,
            0.5,
            metrics_separated=dict.fromkeys(values, 0.25 + 0.25 * run),
            metrics_concatenated=dict.fromkeys(values, 3.5),
        )
        for run in range(2)
    ]
    plain = [some_run("cosface", run, 0.5) for run in range(without)]
    titles = {"triplet": "Triplet", "cosface": "CosFace"}
    return table_of(MeasuredExperiment(some_summary(methods=titles), tuple(runs + plain)))


def test_a_metric_of_the_user_is_a_column_under_the_name_of_its_function():
    drawn = table(OWN, "recall@2")
    further = [(column.group, column.name) for column in drawn.columns[7:]]
    assert further == [
        (f"further, {kind}", name) for kind in ("separated", "concatenated") for name in ("spread", "R@2")
    ]
    texts = [cell_text(cell).partition(" ")[0] for cell in cells_beside(drawn.rows[0])]
    assert texts == ["0.375", "37.50", "3.5", "350.00"], "a share is a percentage, another number is as it is"
    assert f"Metrics of the user: spread is {OWN}." in drawn.remarks
    assert "Not percentages: spread." in drawn.remarks
    assert "spread" in to_markdown(drawn)


def test_the_values_of_further_metrics_are_in_the_files():
    rows = {(row["variant"], row["metric"]): row for row in csv.DictReader(io.StringIO(to_csv(table(OWN, "recall@2"))))}
    assert float(rows["separated", "spread"]["mean"]) == 0.375
    assert float(rows["concatenated", "recall@2"]["mean"]) == 3.5
    assert rows["separated", "recall@2"]["n"] == "2"


def test_functions_of_one_name_keep_their_files():
    names = [column.name for column in table(OWN, OTHER).columns[7:9]]
    assert names == [OWN, OTHER]


def test_a_method_without_a_metric_has_empty_cells_and_a_table_without_metrics_no_columns():
    cosface = next(row for row in table("nmi", without=2).rows if row.key == "cosface")
    assert all(cell.empty for cell in cells_beside(cosface))
    assert len(table().columns) == 7
    assert not any("percentages:" in note for note in table().remarks)
