"""Compares what lagen makes of the tiny model with the golden text; see golden.py."""
import sys

import golden

sys.exit(golden.main())
