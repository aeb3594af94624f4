"""Values, and the numbers that are made of them: profiles, peaks, shares, names of a tree.

Makes up all that it looks at, and shows it where a view's words are what a value comes to.
Has no program, no memory and no clock.
"""
