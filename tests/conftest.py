"""What holds for every test: no deadline for single examples, as test machines are shared."""

from hypothesis import settings

settings.register_profile("darc", deadline=None)
settings.load_profile("darc")
