"""The tests. This is imported before any library, so it sets what numpy reads when it is imported."""

import os

# As in `bot.__main__`: numpy's threads spin while they wait, which takes ten times the time of what they compute, and
# the processors of the other workers.
os.environ.setdefault("OMP_NUM_THREADS", "1")
