"""The operator: launch walks, watch them and collect the record."""
