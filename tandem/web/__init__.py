"""HTTP, and nothing else: routes, schemas, error shapes. Flask is known here and in app.py only."""
