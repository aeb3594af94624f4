"""What is written into files and read from them again.

Writes into folders of the test's own, and reads what earlier releases have written
(``tests/recorded``). Has no program behind a session.
"""
