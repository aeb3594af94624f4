"""Code reading: what a program's live bytes, symbols and frame information say of its calls."""
