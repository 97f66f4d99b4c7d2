"""`python -m tests.contract.pages` rewrites the pages of `docs` that name the tests which prove something."""

from tests.contract.coverage import coverage_page
from tests.contract.security import PAGE, security_page
from tests.support.promises import ROOT

if __name__ == "__main__":
    (ROOT / "docs" / "coverage.md").write_text(coverage_page())
    PAGE.write_text(security_page())
