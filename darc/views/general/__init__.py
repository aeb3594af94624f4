"""The views that any analysis has, where its part of a frozen ``Snapshot`` has a say in them.

They know no particular part: what it adds is in its :class:`~darc.views.parts.part.PartView`.
They make text, and touch no file, no program and no session.
"""
