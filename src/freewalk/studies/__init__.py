"""The paper's evaluation, figure by figure: specs, claims, verdicts."""
