"""All requests to Kafka: topics, offsets, the records of an offset range, the transaction topic.

In: Kafka's properties, topics and offset ranges. Out: raw records and offsets, or a TransientError. Imports
config, decode and launch.
"""
