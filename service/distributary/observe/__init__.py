"""Shows the service's state: status, metrics, the HTTP server and its page.

In: reports of workers and threads. Out: JSON, Prometheus text, the page. Imports lake, delta and what lies below them;
neither rules nor apply.
"""
