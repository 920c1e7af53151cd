"""The diagnosis: what each design would do on a problem, in numbers and in words."""
