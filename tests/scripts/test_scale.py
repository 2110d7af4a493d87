"""The figures of large files, at a small size."""

import pandas as pd

from scripts import scale


def test_a_pass_over_each_kind_of_file_is_measured(capsys):
    table = pd.DataFrame(scale.streams(3000, rounds=1))
    assert list(table["of"].value_counts()) == [5, 5] and (table["seconds"] > 0).all()
