"""`python -m rollwise`: the command."""

import sys

from rollwise.cli import main

sys.exit(main())
