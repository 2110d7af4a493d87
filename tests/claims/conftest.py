"""The shipped claims, the tables of quick studies and the reference."""

import pytest

from precbench.claims import load_claims
from precbench.claims.ledger import read_ledger, reference_path
from tests.claims.helpers import quick_studies


@pytest.fixture(scope="session")
def claims():
    return load_claims()


@pytest.fixture(scope="session")
def computed():
    """The tables of all quick studies."""
    return quick_studies()


@pytest.fixture(scope="session")
def reference():
    return {row.id: row for row in read_ledger(reference_path())}
