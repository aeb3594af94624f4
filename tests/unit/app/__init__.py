"""Commands, options and events, from what a user types to what is told.

Types commands at an application on a made-up program (:mod:`tests.unit.users`,
:mod:`tests.fake_app`), and starts launchers with debuggers that are shell scripts.
Starts no real debugger.
"""
