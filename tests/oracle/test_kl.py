"""The KL rule: the quick set, or everything when the long tests are asked for. See kl.py."""
import os
import sys

import kl

sys.exit(kl.main(["--all"] if os.environ.get("LAGEN_TEST_ALL") else []))
