"""A separate cache for every test."""

import pytest


@pytest.fixture(autouse=True)
def cache(cache):
    return cache
