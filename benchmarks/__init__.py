"""What darc costs, beside what other tools cost, all measured in one run: ``make bench``."""
