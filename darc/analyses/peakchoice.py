"""Which peak of f0's profile is explained: when enough was seen to look for it, and what it is."""

from __future__ import annotations

from enum import Enum, auto

from darc.analyses.peakprofile import PeakProfile
from darc.analyses.profilepace import ProfilePace
from darc.model.peaks import LAST_PEAK


class Choice(Enum):
    """What becomes of it as it is looked for."""

    WAITS = auto()
    """More calls are to be seen."""
    IS_USERS = auto()
    IS_MADE = auto()


class PeakChoice:
    """Of the ``profile`` of a function that the user knows as ``spec``; ``pace`` says how much is
    to be seen before."""

    def __init__(self, profile: PeakProfile, pace: ProfilePace, spec: str) -> None:
        self._profile = profile
        self.pace = pace
        self._spec = spec
        self.doubts: list[str] = []
        """What the user should know beside the peak."""
        self.is_fresh = False
        """Whether the user has made it at this stop: no call was searched yet."""

    def has_seen_enough(self, seconds: float) -> bool:
        """Whether the profile can be looked at, after so many seconds; else more is waited for."""
        profile = self._profile.at_choice
        if not profile.bins:  # nothing came in the time
            self.pace.doubles(seconds)
            return False
        return not self.pace.lets_the_herd_pass(profile.count, seconds)

    def look(self, peak: str | None, seconds: float) -> Choice:
        """Looks for the ``peak`` that is asked for, once enough was seen; ``None``: the user is to
        choose one. Where it is not there yet, more is waited for."""
        if peak in (None, LAST_PEAK) and self.pace.looks_longer(self._profile, peak):
            return Choice.WAITS
        if peak is None:
            return Choice.IS_USERS
        if self.pace.is_too_soon(self._profile.at_choice.count) or not self._profile.choose(peak):
            self.pace.doubles(seconds)
            return Choice.WAITS
        self._doubt(peak)
        return Choice.IS_MADE

    def made_by_user(self, peak: str) -> None:
        """At this stop; perhaps for a second time."""
        if self.is_fresh:
            self.doubts.clear()
        self.is_fresh = True
        self._doubt(peak)

    def is_followed(self) -> None:
        """The search goes on by it: it is not fresh any more."""
        self.is_fresh = False

    def _doubt(self, peak: str) -> None:
        told = self._profile.told_of_last(peak, self._spec)
        if told is None:
            told = self._profile.told_of_percentile(peak, self._spec)
        if told is not None:
            self.doubts.append(told)
