"""What the service shows of itself: status, metrics, the HTTP server and its page.

In: what workers and threads report. Out: JSON, Prometheus text, the page. Imports neither rules nor delta.
"""
