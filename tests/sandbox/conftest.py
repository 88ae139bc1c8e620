import pytest

from rollwise.errors import ConfigError
from rollwise.sandbox import check_sandbox


@pytest.fixture(scope="session")
def sandbox() -> None:
    """Skips where there is no sandbox."""
    try:
        check_sandbox()
    except ConfigError as error:
        pytest.skip(str(error))
