"""Greedy texts: the quick set, or everything when the long tests are asked for. See greedy.py."""
import os
import sys

import greedy

sys.exit(greedy.main(["--all"] if os.environ.get("LAGEN_TEST_ALL") else []))
