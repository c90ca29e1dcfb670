"""Tables as Markdown: no title or name becomes a tag of HTML."""

from reports.tables.formats import to_markdown
from reports.tables.table import Cell, Column, Line, Row, Table


def test_no_title_or_name_is_a_tag():
    row = Row("<img src=x>", (Line((Cell("< 0.001"),)),))
    table = Table("a <script>x</script>\nb", "<!-- c", (Column("<b>"),), (row,), notes=("</p>",))
    text = to_markdown(table)
    assert "**a \\<script>x\\</script> b**" in text
    assert "\\<img src=x>" in text
    assert "| < 0.001 |" in text
    assert "\\<!-- c" in text
    assert "\\</p>" in text
