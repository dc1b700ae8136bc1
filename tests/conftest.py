"""Settings of the whole test run."""

import atexit
import os
import shutil
import tempfile

os.environ.setdefault("OMP_NUM_THREADS", "1")  # tests share two cores
os.environ["CCT_ZOO_CACHE"] = tempfile.mkdtemp(prefix="cct-zoo-cache-")  # every run solves its networks itself

from hypothesis import HealthCheck, settings

atexit.register(shutil.rmtree, os.environ["CCT_ZOO_CACHE"], ignore_errors=True)

# No deadline: the first example of a test may compile or import for seconds. In CI the examples are
# the same on every run, so that a red build can be repeated.
# So few examples find what a hundred find on most properties; tests that need more say so.
settings.register_profile("zoo", deadline=None, max_examples=25, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("zoo"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "zoo")
