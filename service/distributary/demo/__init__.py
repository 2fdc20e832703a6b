"""The demo: a broker, change events, the service and its tables on one machine.

In: options of the command. Out: a running pipeline, and a comparison of its table with the source. Imports
launch.
"""
