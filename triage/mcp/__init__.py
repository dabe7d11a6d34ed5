"""The tools of triage for other assistants, over the Model Context Protocol."""
