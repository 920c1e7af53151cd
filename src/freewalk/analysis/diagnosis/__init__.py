"""The diagnosis: what each design would do on a problem, in numbers and in words.

`diagnose.py` decides: it runs the parts within a time budget, races two designs at a time, and names what it left out.
`findings.py` has the results, and derives the verdicts from them (`Diagnosis.entrapped`, `slower`, `best`). `words.py`
writes them as sentences and a table, and the designs and rules as code to paste. The picture is drawn in
`report/diagnosis.py`.
"""
