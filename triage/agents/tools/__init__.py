"""Read-only tools for models: kit.py holds what a call may do, the others what each tool looks into."""
