"""These tests need the second environment: `make test-engines`. Elsewhere nothing here is collected."""

import os

collect_ignore_glob = ["verl_cpu/*"] if os.environ.get("ROLLWISE_ENGINES") else ["*"]
