"""From decoded records to one Delta commit: the last word on each key, merged together with the progress it stands for."""
