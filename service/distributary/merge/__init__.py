"""From decoded records to one Delta commit: the last word on each key, with the progress that it stands for."""
