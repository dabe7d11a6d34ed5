"""triage in Slack: a slash command, questions in its threads, outcomes after a button."""
