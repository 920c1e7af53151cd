"""The diagnosis: what each design would do on a problem, in numbers and in words.

`diagnose.py` decides: it runs the parts within a time budget, races two designs at a time, and names what it left out.
`findings.py` has the results, and derives the verdicts from them (`Diagnosis.entrapped`, `slower`, `best`). `words.py`
writes them as sentences and a table, `code.py` writes designs and rules as Python and as TOML. The picture is drawn in
`report/diagnosis.py`.
"""
