"""The parts of the HTML report: sections, plots, drill-down. triage.evaluation.html puts them together."""
